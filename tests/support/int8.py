"""What the kernels that quantize activations must leave behind."""

import numpy as np

from .oracle import assert_close

# (n, QB): one block, several, and more than the 1024 values of one group.
BLOCKS = [(32, 32), (576, 32), (2048, 32), (4128, 32), (16, 16), (48, 16), (4112, 16)]


def check_blocks(got: dict, want: np.ndarray, dtype: str, block: int) -> None:
    """Codes and scales describe `want` to half a step, and the sums are those of the codes."""
    codes, scales = got["q"].reshape(len(want), -1, block), got["qs"]
    assert np.abs(codes.astype(int)).max() <= 127
    peaks = np.abs(want).reshape(codes.shape).max(axis=-1)
    assert_close(scales, peaks / 127, op="int8_scale", dtype=dtype)
    steps = want.reshape(codes.shape) / np.where(scales > 0, scales, 1)[..., None]
    assert_close(codes, steps, op="int8_code", dtype=dtype)
    sums = codes.sum(axis=-1, dtype=np.int64) * scales.astype(np.float64)
    assert_close(got["qm"], sums, op="int8_sum", dtype="f32")
