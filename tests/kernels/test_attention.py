"""Attention over the cache against a float64 softmax."""

import numpy as np
import pytest

from support.launch import run_kernel
from support.oracle import assert_close
from support.places import on
from support.rand import normal, poisoned

PARTS = 8  # parts that the buffers between the two kernels have room for
cpu = pytest.mark.parametrize("machine", ["cpu"], indirect=True)


def cached(machine, keys, values, room=64):
    """kc and vc of [Hkv, used, D] keys and values; NaN in every slot that is not used."""
    heads, used, size = keys.shape
    slots, warp = (used + room) // 64 * 64 + 64, machine.warp
    kc, vc = (np.full((heads, slots, size), np.nan, keys.dtype) for _ in range(2))
    kc[:, :used], vc[:, :used] = keys, values
    kc = np.moveaxis(kc.reshape(heads, slots // warp, warp, size), 2, 3)
    return {"kc": np.ascontiguousarray(kc), "vc": vc}, {"P": slots}


def decode(machine, types, q, keys, values, *, scale, shared=1, splits=1):
    """Both kernels of a decoding step; q is [H, D] and the last of the keys is its own."""
    tensors, dims = cached(machine, keys, values)
    step = {"pos": keys.shape[1] - 1, "kv_len": keys.shape[1], "splits": splits}
    parts = run_kernel(
        machine, "sdpa_decode", types, {"QH": shared}, tensors | {"q": q}, {"scale": scale},
        dims | {"splits": PARTS}, step,
    )  # fmt: skip
    out = {"T": types["T"]}
    return run_kernel(machine, "sdpa_combine", out, tensors=parts, step=step)["out"]


def prefill(machine, types, q, keys, values, *, scale, rows=None):
    """q is [rows, H, D]; the last of the keys belongs to the last of the `rows` that take part."""
    tensors, dims = cached(machine, keys, values)
    rows = len(q) if rows is None else rows
    step = {"pos": keys.shape[1] - rows, "kv_len": keys.shape[1], "rows": rows}
    return run_kernel(
        machine, "sdpa_prefill", types, tensors=tensors | {"q": q}, consts={"scale": scale},
        dims=dims, step=step,
    )["out"]  # fmt: skip


def sdpa64(q, keys, values, scale):
    """Causal attention of [rows, H, D] over [Hkv, used, D]; the last row sees all keys."""
    rows, heads, _ = q.shape
    share, used = heads // len(keys), keys.shape[1]
    k, v = (np.repeat(x.astype(np.float64), share, axis=0) for x in (keys, values))
    scores = np.einsum("rhd,htd->rht", q.astype(np.float64), k) * scale
    seen = np.arange(used) <= np.arange(used - rows, used)[:, None]
    scores = np.where(seen[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("rht,htd->rhd", weights, v)


def random(types, heads, kv_heads, used, size, rows=1):
    """(q [rows, H, D], keys, values [Hkv, used, D])."""
    keys = normal((kv_heads, used, size), types["K"])
    values = normal((kv_heads, used, size), types["K"], seed=1)
    return normal((rows, heads, size), types["T"]), keys, values


def check_decode(machine, types, *, shared, kv_heads, used, size, splits, groups=1):
    q, keys, values = random(types, shared * groups * kv_heads, kv_heads, used, size)
    scale = size**-0.5
    got = decode(machine, types, q[0], keys, values, scale=scale, shared=shared, splits=splits)
    assert_close(got, sdpa64(q, keys, values, scale)[0], op="sdpa", dtype=types["T"])


def check_prefill(machine, types, *, heads, kv_heads, pos, rows, size):
    q, keys, values = random(types, heads, kv_heads, pos + rows, size, rows)
    got = prefill(machine, types, q, keys, values, scale=size**-0.5)
    assert_close(got, sdpa64(q, keys, values, size**-0.5), op="sdpa", dtype=types["T"])


@on("sdpa_decode")
@pytest.mark.parametrize("used", [1, 31, 32, 33, 255, 256, 257])
def test_decode_of_any_length_matches_float64(machine, types, used):
    check_decode(machine, types, shared=3, kv_heads=1, used=used, size=16, splits=1)


@on("sdpa_decode")
@pytest.mark.parametrize("size", [16, 64, 80, 128, 256])
def test_decode_of_any_head_size_matches_float64(machine, types, size):
    check_decode(machine, types, shared=2, kv_heads=1, used=70, size=size, splits=2)


@pytest.mark.parametrize("shared", [1, 2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("groups", [1, 2])
def test_decode_of_any_sharing_matches_float64(machine, shared, groups):
    """`groups` of `shared` query heads each read the same keys."""
    types = {"T": "f32", "K": "f16"}
    check_decode(
        machine, types, shared=shared, groups=groups, kv_heads=2, used=66, size=16, splits=2
    )


@pytest.mark.parametrize("splits", range(1, PARTS + 1))
@pytest.mark.parametrize("used", [1, 3, 449])
def test_decode_in_any_number_of_parts_matches_float64(machine, splits, used):
    types = {"T": "f32", "K": "f32"}
    check_decode(machine, types, shared=1, kv_heads=1, used=used, size=16, splits=splits)


@cpu
@pytest.mark.parametrize("cache", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("used", "size", "splits"), [(4097, 128, 1), (4097, 64, 8)])
def test_long_decode_matches_float64(machine, cache, used, size, splits):
    types = {"T": "f32", "K": cache}
    check_decode(machine, types, shared=4, kv_heads=2, used=used, size=size, splits=splits)


@cpu
@pytest.mark.parametrize("splits", [1, 5])
def test_decode_beyond_32768_matches_float64(machine, splits):
    types = {"T": "f32", "K": "f16"}
    check_decode(machine, types, shared=2, kv_heads=1, used=33001, size=16, splits=splits)


def test_decode_sees_one_loud_key_wherever_it_is(machine):
    """Nothing is skipped: the one key that counts lies at each place of a chunk in turn."""
    types, used = {"T": "f32", "K": "f32"}, 321
    q = np.ones((1, 16), np.float32)
    values = normal((1, used, 16))
    for at in (0, 1, 31, 63, 64, 127, 255, 256, 319, 320):
        keys = np.zeros((1, used, 16), np.float32)
        keys[0, at] = 50
        got = decode(machine, types, q, keys, values, scale=1.0)
        assert_close(got, values[:, at], op="sdpa", dtype="f32")


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_of_ten_thousand_stay_finite(machine, splits, sign):
    q, keys, values = random({"T": "f32", "K": "f32"}, 2, 1, 300, 16)
    scores = np.einsum("hd,td->ht", q[0].astype(np.float64), keys[0])
    scale = float(np.float32(sign * 1e4 / np.abs(scores).max()))
    types = {"T": "f32", "K": "f32"}
    got = decode(machine, types, q[0], keys, values, scale=scale, shared=2, splits=splits)
    assert_close(got, sdpa64(q, keys, values, scale)[0], op="sdpa", dtype="f32")
    got = prefill(machine, types, q, keys, values, scale=scale)
    assert_close(got, sdpa64(q, keys, values, scale), op="sdpa", dtype="f32")


@pytest.mark.parametrize("score", [0, 1e4, -1e4])
def test_equal_scores_give_the_mean(machine, score):
    types = {"T": "f32", "K": "f32"}
    q, keys = np.ones((1, 1, 16), np.float32), np.full((1, 300, 16), score / 16, np.float32)
    values = normal((1, 300, 16))
    want = values.astype(np.float64).mean(axis=1)
    for splits in (1, 2, 8):
        got = decode(machine, types, q[0], keys, values, scale=1.0, splits=splits)
        assert_close(got, want, op="sdpa", dtype="f32")
    got = prefill(machine, types, q, keys, values, scale=1.0)
    assert_close(got[0], want, op="sdpa", dtype="f32")


def test_parts_that_the_step_lacks_are_not_read(machine):
    part, stat = poisoned((PARTS, 2, 16)), poisoned((PARTS, 2, 2))
    part[:2], stat[:2] = normal((2, 2, 16)), 1
    got = run_kernel(
        machine, "sdpa_combine", {"T": "f32"}, tensors={"part": part, "stat": stat},
        step={"splits": 2},
    )["out"]  # fmt: skip
    assert_close(got, part[:2].astype(np.float64).mean(axis=0), op="sdpa", dtype="f32")


@on("sdpa_prefill")
@pytest.mark.parametrize("rows", [1, 3, 4, 5])
@pytest.mark.parametrize("pos", [0, 1, 255])
def test_prefill_matches_float64(machine, types, rows, pos):
    check_prefill(machine, types, heads=1, kv_heads=1, pos=pos, rows=rows, size=16)


@on("sdpa_prefill")
@pytest.mark.parametrize("size", [16, 64, 80, 128, 256])
def test_prefill_of_any_head_size_matches_float64(machine, types, size):
    check_prefill(machine, types, heads=2, kv_heads=1, pos=30, rows=4, size=size)


@cpu
@pytest.mark.parametrize("cache", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("rows", [1, 5, 33, 130])
@pytest.mark.parametrize("pos", [0, 255, 4000])
def test_long_prefill_matches_float64(machine, cache, rows, pos):
    types = {"T": "f32", "K": cache}
    check_prefill(machine, types, heads=3, kv_heads=1, pos=pos, rows=rows, size=64)


@cpu
def test_prefill_beyond_32768_matches_float64(machine):
    types = {"T": "f32", "K": "f16"}
    check_prefill(machine, types, heads=1, kv_heads=1, pos=33000, rows=3, size=16)


def test_rows_of_the_program_that_the_step_lacks_are_not_written(machine):
    types = {"T": "f32", "K": "f32"}
    q, keys, values = random(types, 2, 1, 15, 16, rows=9)
    got = prefill(machine, types, q, keys, values, scale=0.25, rows=5)
    assert_close(got[:5], sdpa64(q[:5], keys, values, 0.25), op="sdpa", dtype="f32")
    assert (got[5:].view(np.uint32) == poisoned((1,)).view(np.uint32)).all()


@pytest.mark.parametrize("pos", [0, 60, 250])
def test_prefill_equals_decode_row_by_row(machine, pos):
    types, rows = {"T": "f32", "K": "f16"}, 5
    q, keys, values = random(types, 2, 1, pos + rows, 16, rows)
    whole = prefill(machine, types, q, keys, values, scale=0.25)
    for r in range(rows):
        used = slice(0, pos + r + 1)
        one = decode(
            machine, types, q[r], keys[:, used], values[:, used], scale=0.25, shared=2, splits=2
        )
        assert_close(whole[r], one, op="sdpa", dtype="f32")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heads": 5}, "H % Hkv == 0"),
        ({"shared": 3}, "H // Hkv % QH == 0|H // Hkv % 3 == 0"),
        ({"size": 257}, "D <= 256"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(machine, wrong, message):
    shape = {"heads": 4, "shared": 2, "size": 16} | wrong
    types = {"T": "f32", "K": "f32"}
    q, keys, values = random(types, shape["heads"], 2, 7, shape["size"])
    with pytest.raises(Exception, match=message):
        decode(machine, types, q[0], keys, values, scale=1.0, shared=shape["shared"])
