"""What an extension module for macOS asks of the system, read from its Mach-O file."""

import hashlib
import struct
from collections import defaultdict
from collections.abc import Iterator

import abi3info
import lief
from abi3info.models import PyVersion, Symbol

OLDEST_PYTHON = PyVersion(3, 11)
OLDEST_SYSTEM = [14, 0]
FRAMEWORKS = {
    f"/System/Library/Frameworks/{name}.framework/Versions/{version}/{name}"
    for name, version in (("Metal", "A"), ("Foundation", "C"))
}
LIBRARIES = FRAMEWORKS | {
    "/usr/lib/libSystem.B.dylib",
    "/usr/lib/libobjc.A.dylib",
    "/usr/lib/libc++.1.dylib",
    "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation",
}
# Newer than macOS 14: without a weak import, the module would not load there.
NEWER = {"_OBJC_CLASS_$_MTLResidencySetDescriptor"}
ENTRY = "_PyInit__native"
WEAK_LOOKUP = -3  # BIND_SPECIAL_DYLIB_WEAK_LOOKUP

lief.logging.disable()  # it doubts the indirect symbols of Zig's linker


def in_stable_abi(name: str) -> bool:
    symbol = Symbol(name.removeprefix("_"))
    known = abi3info.FUNCTIONS.get(symbol) or abi3info.DATAS.get(symbol)
    return known is not None and known.added <= OLDEST_PYTHON


def _is_coalesced(binding: lief.MachO.BindingInfo) -> bool:
    if isinstance(binding, lief.MachO.DyldBindingInfo):
        return binding.binding_class == lief.MachO.DyldBindingInfo.CLASS.WEAK
    return binding.library_ordinal == WEAK_LOOKUP


class Image:
    """One arm64 image. Raises ValueError for anything else."""

    def __init__(self, data: bytes):
        if data[:4] != b"\xcf\xfa\xed\xfe":
            raise ValueError("no 64-bit Mach-O file of one architecture")
        self._data = data
        parsed = lief.MachO.parse(list(data))
        if parsed is None or parsed.size != 1:
            raise ValueError("no readable Mach-O file")
        self._macho = parsed.at(0)
        self._imports: dict[str, set[tuple[str, bool]]] = defaultdict(set)
        for binding in self._macho.bindings:
            # A weak one is defined in this image too.
            if binding.has_symbol and not _is_coalesced(binding):
                library = binding.library.name if binding.has_library else "Python"
                self._imports[library].add((binding.symbol.name, binding.weak_import))

    def facts(self) -> list[str]:
        lines = [f"{len(self._data)} bytes, {self._macho.header.cpu_type.name}"]
        for library, names in sorted(self._imports.items()):
            lines.append(f"{len(names):4} symbols of {library}")
        return lines

    def findings(self) -> Iterator[str]:
        yield from self._header()
        yield from self._libraries()
        yield from self._symbols()
        yield from self._signature()

    def _header(self) -> Iterator[str]:
        macho = self._macho
        if macho.header.cpu_type != lief.MachO.Header.CPU_TYPE.ARM64:
            yield f"processor: got {macho.header.cpu_type.name}, need ARM64"
        build = macho.build_version
        if build is None or build.platform != lief.MachO.BuildVersion.PLATFORMS.MACOS:
            yield "built for no or another platform, need macOS"
        elif build.minos[:2] != OLDEST_SYSTEM:
            yield f"minimum system: got {build.minos}, need {OLDEST_SYSTEM}"

    def _libraries(self) -> Iterator[str]:
        commands = (lib for lib in self._macho.libraries if "LOAD" in lib.command.name)
        names = {lib.name for lib in commands}
        yield from (f"loads {name}" for name in sorted(names - LIBRARIES))
        yield from (f"does not load {name}" for name in sorted(FRAMEWORKS - names))
        if self._macho.has_rpath:
            yield f"has the rpath {self._macho.rpath.path}"

    def _symbols(self) -> Iterator[str]:
        for name, _ in sorted(self._imports["Python"]):
            if not in_stable_abi(name):
                yield f"undefined, and not in Python 3.11's stable ABI: {name}"
        for names in self._imports.values():
            for name, weak in names:
                if name in NEWER and not weak:
                    yield f"newer than macOS 14, but not a weak import: {name}"
        if ENTRY not in {s.name for s in self._macho.exported_symbols}:
            yield f"does not export {ENTRY}"

    def _signature(self) -> Iterator[str]:
        """A CodeDirectory whose hashes are those of the pages; macOS ends a process without."""
        if not self._macho.has_code_signature:
            yield "is not signed"
            return
        command = self._macho.code_signature
        blob = self._data[command.data_offset : command.data_offset + command.data_size]
        magic, _, count = struct.unpack_from(">3I", blob)
        slots = dict(struct.unpack_from(">II", blob, 12 + 8 * i) for i in range(count))
        if magic != 0xFADE0CC0 or 0 not in slots:
            yield "signature without a CodeDirectory"
            return
        directory = blob[slots[0] :]
        hashes, _, _, pages, limit = struct.unpack_from(">5I", directory, 16)
        size, kind, _, page_bits = struct.unpack_from("4B", directory, 36)
        if (size, kind) != (32, 2) or limit != command.data_offset:
            yield "signature: need SHA-256 of all bytes before it"
            return
        page = 1 << page_bits
        for i in range(pages):
            want = directory[hashes + size * i : hashes + size * (i + 1)]
            if hashlib.sha256(self._data[i * page : min((i + 1) * page, limit)]).digest() != want:
                yield f"signature: page {i} was changed after signing"
                return
        if pages != -(-limit // page):
            yield "signature: does not cover the file"
