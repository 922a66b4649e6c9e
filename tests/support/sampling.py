"""The sampling chain in float64, and Philox in Python integers."""

import numpy as np


def philox(counter, key):
    """Philox4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        low = 2**32 - 1
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & low, (p0 >> 32) ^ c[3] ^ k[1], p0 & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def uniform(seed: int, draw: int) -> float:
    return (philox([draw, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])[0] >> 8) * 2.0**-24


def softmax(x: np.ndarray) -> np.ndarray:
    """Probabilities of float logits; -inf and NaN have none, several +inf share all."""
    x = np.where(np.isnan(x), -np.inf, x.astype(np.float64))
    with np.errstate(invalid="ignore"):
        w = np.where(x == x.max(), 1.0, np.exp(x - x.max()))
    return w / w.sum()


def order(x: np.ndarray) -> np.ndarray:
    """Ids from the likeliest down, lowest ids first among equals, NaN last."""
    return np.argsort(-np.where(np.isnan(x), -np.inf, x.astype(np.float64)), kind="stable")


def penalize(
    x, times, in_prompt, *, repetition=1, presence=0, frequency=0, bias=None, temperature=1
):
    x = x.astype(np.float64)
    x = np.where((times > 0) | in_prompt, np.where(x > 0, x / repetition, x * repetition), x)
    x = x - presence * (times > 0) - frequency * times
    x = x if bias is None else x + bias
    return x / temperature if temperature > 0 else x


def top_k(x: np.ndarray, k: int) -> set[int]:
    return set(order(x)[: k or len(x)].tolist())


def top_p_size(x: np.ndarray, p: float) -> int:
    """How many of order(x) stay."""
    mass = np.cumsum(softmax(x)[order(x)])
    return min(int(np.searchsorted(mass, p)) + 1, len(x))


def chi_square_z(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Deviations of the statistic from what chance gives; cells expecting under 5 are merged."""
    expected = probabilities * counts.sum()
    big = expected >= 5
    assert not counts[probabilities == 0].any(), "a token of probability 0 was drawn"
    seen = np.append(counts[big], counts[~big].sum())
    want = np.append(expected[big], expected[~big].sum())
    seen, want = (seen[:-1], want[:-1]) if want[-1] < 5 else (seen, want)
    degrees = len(want) - 1
    if degrees == 0:
        return 0.0
    statistic = ((seen - want) ** 2 / want).sum()
    # Wilson and Hilferty: the cube root is nearly normal.
    spread = 2 / (9 * degrees)
    return float(((statistic / degrees) ** (1 / 3) - (1 - spread)) / spread**0.5)
