"""The scale and bias of each group that lose least, in numpy.

Groups lie in columns, x [G, N], so that a group's numbers are rows that numpy walks without gaps.
What is lost is sum(v * (decoded - x)**2) with v = |x| + rms(x) of the group: large weights count
more, since without that clipping them pays for the sum and costs the model (docs/numerics.md).
"""

import numpy as np

# Parts of the range from the smallest to the largest weight that the codes may span at first:
# clipping the extremes can cost less than a coarser step.
SPANS = (1.0, 0.93, 0.86, 0.79, 0.72)
REFITS = 2


def fit_groups(x: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes [G, N] in f32, scales and biases [N] in f16, for x [G, N] in f32.

    No group loses more than by rounding to nearest between its smallest and largest weight.
    """
    top, v = np.float32(2**bits - 1), importance(x)
    low, high = x.min(axis=0), x.max(axis=0)
    plain = rounded((high - low) / top), rounded(low)
    codes = encode(x, *plain, top)
    least = loss(x, v, codes, *plain)

    scale, bias = (rounded(a) for a in search(x, v, low, high, top))
    with np.errstate(over="ignore", invalid="ignore"):  # beyond f16: never better
        found = encode(x, scale, bias, top)
        better = loss(x, v, found, scale, bias) < least
    np.copyto(codes, found, where=better)
    scale, bias = np.where(better, scale, plain[0]), np.where(better, bias, plain[1])
    return codes, scale.astype(np.float16), bias.astype(np.float16)


def importance(x: np.ndarray) -> np.ndarray:
    """v [G, N], with a mean of about 1 in each group."""
    rms = np.sqrt(np.einsum("gn,gn->n", x, x) / np.float32(len(x)))
    v = np.abs(x)
    v += rms
    v *= np.divide(0.5, rms, out=np.zeros_like(rms), where=rms > 0)
    return v


def search(x, v, low, high, top):
    """Scale and bias [N] in f32: weighted least squares for the best codes that any span gives."""
    step = (high - low) / top
    step[step == 0] = 1
    # In units of the plain step above `low`: f32 sums of these stay exact enough to compare.
    u = (x - low) / step
    lines = Lines(u, v, top)
    for span in SPANS:
        lines.improve(np.full_like(low, span), np.full_like(low, (1 - span) * top / 2))
    for _ in range(REFITS):
        lines.improve(lines.scale, lines.bias)
    return lines.scale * step, lines.bias * step + low


class Lines:
    """The best line code -> weight of each group so far."""

    def __init__(self, u: np.ndarray, v: np.ndarray, top: np.float32):
        self._u, self._v, self._top = u, v, top
        self._q, self._qv, self._work = (np.empty_like(u) for _ in range(3))
        uv = np.multiply(u, v, out=self._work)
        self._sum_v, self._sum_u, self._sum_uu = v.sum(0), uv.sum(0), (uv * u).sum(0)
        self.scale, self.bias = np.ones_like(u[0]), np.zeros_like(u[0])
        self._least = np.full_like(u[0], np.inf)

    def improve(self, scale: np.ndarray, bias: np.ndarray) -> None:
        """Encode by this line, fit a line to the codes, and keep it where it is the best."""
        q = encode(self._u, scale, bias, self._top, out=self._q)
        qv = np.multiply(q, self._v, out=self._qv)
        sum_q = qv.sum(axis=0)
        sum_qq = np.multiply(qv, q, out=self._work).sum(axis=0)
        sum_qu = np.multiply(qv, self._u, out=self._work).sum(axis=0)
        spread = self._sum_v * sum_qq - sum_q * sum_q
        is_line = (spread > 0) & (self._sum_v > 0)  # else all codes are equal
        total = np.where(is_line, self._sum_v, 1)
        scale = np.divide(self._sum_v * sum_qu - sum_q * self._sum_u, spread, out=scale.copy(),
                          where=is_line)  # fmt: skip
        bias = (self._sum_u - scale * sum_q) / total
        # The loss of the line, from the sums.
        lost = self._sum_uu + scale * (scale * sum_qq - 2 * sum_qu + 2 * bias * sum_q)
        lost += bias * (self._sum_v * bias - 2 * self._sum_u)
        better = is_line & (lost < self._least)
        for kept, new in ((self._least, lost), (self.scale, scale), (self.bias, bias)):
            np.copyto(kept, new, where=better)


def encode(x, scale, bias, top, out=None) -> np.ndarray:
    """The nearest code of each weight, in f32; 0 where the scale is 0."""
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)
    q = np.multiply(x, inverse, out=out)
    q -= bias * inverse
    np.rint(q, out=q)
    return np.clip(q, 0, top, out=q)


def loss(x, v, codes, scale, bias) -> np.ndarray:
    """sum(v * (decoded - x)**2) [N] of each group."""
    difference = codes * scale
    difference += bias
    difference -= x
    weighted = difference * v
    weighted *= difference
    return weighted.sum(axis=0)


def rounded(values: np.ndarray) -> np.ndarray:
    """To f16 and back."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)
