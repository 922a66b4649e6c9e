"""No file crashes the process: every outcome is a sound result or a typed error."""

import os
import random
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from butter import _native, errors
from native import files

ATTACKS = [
    pytest.param(reader, *attack, id=f"{reader}: {name}")
    for reader, attacks in [
        ("read_safetensors", files.SAFETENSORS_ATTACKS),
        ("read_safetensors_index", files.INDEX_ATTACKS),
        ("read_gguf", files.GGUF_ATTACKS),
    ]
    for name, attack in attacks.items()
]
SOUND = [("read_safetensors", seed) for seed in files.SOUND_SAFETENSORS]
SOUND += [("read_safetensors_index", seed) for seed in files.SOUND_INDEX]
SOUND += [("read_gguf", seed) for seed in files.SOUND_GGUF]


def touch(reader: str, path) -> bool:
    """Read the file and every byte it claims to hold; False if it was refused."""
    try:
        result = getattr(_native, reader)(path)
    except errors.ButterError as error:
        str(error).encode()  # a message is always printable
        return False
    if reader == "read_safetensors_index":
        return True
    mapping, tensors, metadata = result
    repr(metadata)
    for _, _, offset, nbytes in tensors.values():
        mapping.view(offset, nbytes).sum()
    return True


@pytest.mark.parametrize(("reader", "content", "error", "words"), ATTACKS)
def test_attack_is_refused_by_name(reader, content, error, words, tmp_path):
    path = files.write(tmp_path / "attack", content)
    with pytest.raises(getattr(errors, error)) as caught:
        getattr(_native, reader)(path)
    message = str(caught.value)
    assert words in message
    assert str(path) in message
    assert len(message) < 700
    assert message.isprintable()


@pytest.mark.parametrize(("reader", "content"), SOUND)
def test_every_prefix_of_a_sound_file_is_refused(reader, content, tmp_path):
    assert touch(reader, files.write(tmp_path / "whole", content))
    for length in range(len(content)):
        assert not touch(reader, files.write(tmp_path / "prefix", content[:length])), length


NUMBERS = [0, 1, 2, 7, 31, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
FRAGMENTS = [b'"', b"{", b"[", b"}", b"]", b",", b":", b"0", b"-1", b"1e9", b"\\u", b"\xff", b"\0"]


def mutate(rng: random.Random, seed: bytes, others: list[bytes]) -> bytes:
    """One to four random edits."""
    content = bytearray(seed)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(content) + 1)
        end = min(len(content), at + rng.randint(1, 24))
        match rng.randrange(8):
            case 0 if at < len(content):
                content[at] ^= 1 << rng.randrange(8)
            case 1:
                del content[at:]
            case 2:
                number = rng.choice([*NUMBERS, len(content), rng.getrandbits(64)])
                content[at : at + 8] = struct.pack("<Q", number)
            case 3:
                content[at : at + 4] = struct.pack("<I", rng.choice(NUMBERS) & 0xFFFFFFFF)
            case 4:
                del content[at:end]
            case 5:
                content[at:at] = content[at:end]
            case 6:
                other = rng.choice(others)
                start = rng.randrange(len(other))
                content[at:end] = other[start : start + rng.randint(1, 40)]
            case _:
                content[at:at] = rng.choice(FRAGMENTS)
    return bytes(content)


def test_mutated_files_are_read_or_refused(tmp_path):
    rng = random.Random(20)
    seeds = [seed for _, seed in SOUND]
    start = time.process_time()
    read = {True: 0, False: 0}
    for _ in range(1_800):
        for reader, seed in SOUND:
            content = mutate(rng, seed, seeds)
            read[touch(reader, files.write(tmp_path / "mutant", content))] += 1
    assert sum(read.values()) >= 10_000
    assert read[True] > 100  # or the mutations are too coarse to get past the first check
    assert time.process_time() - start < 30


@pytest.mark.parametrize("reader", ["read_safetensors", "read_safetensors_index", "read_gguf"])
def test_random_bytes_are_refused(reader, tmp_path):
    @settings(max_examples=200, deadline=None)
    @given(st.binary(min_size=1, max_size=200))
    def check(content):
        for prefix in (b"", b"GGUF\3\0\0\0", struct.pack("<Q", len(content)), b"{"):
            touch(reader, files.write(tmp_path / "noise", prefix + content))

    check()


def test_metadata_past_the_limit_is_refused_before_it_is_allocated(tmp_path):
    path = tmp_path / "sparse.gguf"
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + files.text("tokens")
    head += struct.pack("<IIQ", files.ARRAY, files.STRING, 2**30)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(2**34)  # 16 GiB of zeros that take no disk: 2**30 empty strings would fit
    with pytest.raises(errors.FileFormatError, match="up to the limit of 134217728 bytes"):
        _native.read_gguf(path)


def test_what_is_not_a_file_is_refused(tmp_path):
    pipe, empty = tmp_path / "pipe", tmp_path / "empty"
    os.mkfifo(pipe)
    empty.touch()
    for path, words in [
        (tmp_path / "missing", "No such file"),
        (tmp_path, "is a directory"),
        (pipe, "is a pipe"),
        (empty, "got 0 bytes"),
        ("/dev/zero", "is a device"),
        (tmp_path / "empty" / "x", "Not a directory"),
    ]:
        for read in (_native.Mapping, _native.read_safetensors, _native.read_gguf):
            with pytest.raises(errors.FileFormatError, match=words):
                read(path)
