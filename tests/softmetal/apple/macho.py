"""Objective-C protocols in a 64-bit Mach-O file: selectors and extended type encodings."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

_FAT, _MACHO, _ARM64, _SEGMENT = 0xCAFEBABE, 0xFEEDFACF, 0x0100000C, 0x19


@dataclass
class Protocol:
    parents: list[str] = field(default_factory=list)
    methods: dict[str, str] = field(default_factory=dict)  # "-name:" -> "v24@0:8@16"


def _slice(data: bytes) -> bytes:
    """The arm64 part of a universal file, or the file."""
    magic, count = struct.unpack_from(">II", data)
    if magic != _FAT:
        return data
    for i in range(count):
        cpu, _, offset, size, _ = struct.unpack_from(">5I", data, 8 + 20 * i)
        if cpu == _ARM64:
            return data[offset : offset + size]
    raise ValueError("no arm64 code in the file")


class Image:
    """One Mach-O image, addressed as if it were loaded."""

    def __init__(self, path: Path):
        self._data = _slice(path.read_bytes())
        self._segments: list[tuple[int, int, int]] = []  # address, size, offset
        self._lists: tuple[int, int] | None = None
        magic, _, _, _, commands = struct.unpack_from("<5I", self._data)
        if magic != _MACHO:
            raise ValueError(f"{path} is no Mach-O file")
        at = 32
        for _ in range(commands):
            command, size = struct.unpack_from("<II", self._data, at)
            if command == _SEGMENT:
                self._read_segment(at)
            at += size

    def _read_segment(self, at: int) -> None:
        address, _, offset, size = struct.unpack_from("<4Q", self._data, at + 24)
        self._segments.append((address, size, offset))
        (sections,) = struct.unpack_from("<I", self._data, at + 64)
        for i in range(sections):
            base = at + 72 + 80 * i
            name = self._data[base : base + 16].rstrip(b"\0")
            if name == b"__objc_protolist":
                self._lists = struct.unpack_from("<QQ", self._data, base + 32)

    def _offset(self, address: int) -> int | None:
        for begin, size, offset in self._segments:
            if begin <= address < begin + size:
                return offset + address - begin
        return None

    def _unpack(self, form: str, address: int) -> tuple[int, ...]:
        offset = self._offset(address)
        if offset is None:
            raise ValueError(f"address {address:#x} is not in the file")
        return struct.unpack_from("<" + form, self._data, offset)

    def _pointer(self, address: int) -> int:
        (value,) = self._unpack("Q", address)
        if value and self._offset(value) is None:
            # A chained fixup: 36 bits of target, an address or an offset from the image.
            value &= (1 << 36) - 1
            if self._offset(value) is None:
                value += self._segments[0][0]
        return value

    def _text(self, address: int) -> str:
        offset = self._offset(address)
        if offset is None:
            return ""
        return self._data[offset : self._data.index(b"\0", offset)].decode()

    def _selectors(self, address: int) -> list[str]:
        if not address:
            return []
        entry, count = self._unpack("II", address)
        out = []
        for i in range(count):
            at = address + 8 + i * (entry & 0xFFFC)
            if entry & 0x80000000:  # relative to the field
                (name,) = self._unpack("i", at)
                out.append(self._text(self._pointer(at + name)))
            else:
                out.append(self._text(self._pointer(at)))
        return out

    def _protocol(self, address: int) -> tuple[str, Protocol]:
        name = self._text(self._pointer(address + 8))
        found = Protocol()
        if parents := self._pointer(address + 16):
            (count,) = self._unpack("Q", parents)
            for i in range(count):
                parent = self._pointer(parents + 8 + 8 * i)
                found.parents.append(self._text(self._pointer(parent + 8)))
        encodings, index = self._pointer(address + 72), 0
        for i, sign in enumerate("-+-+"):  # instance, class; then the optional ones
            for selector in self._selectors(self._pointer(address + 24 + 8 * i)):
                encoding = self._text(self._pointer(encodings + 8 * index)) if encodings else ""
                found.methods[sign + selector] = encoding
                index += 1
        return name, found

    def protocols(self) -> dict[str, Protocol]:
        if not self._lists:
            return {}
        address, size = self._lists
        return dict(self._protocol(self._pointer(address + at)) for at in range(0, size, 8))
