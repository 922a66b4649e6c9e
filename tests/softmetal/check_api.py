"""Checks that the Metal and Foundation we declare are Apple's: selectors, types, enums, age.

    python tests/softmetal/check_api.py

Needs clang-19 and lld-19. The authorities: protocol metadata in pyobjc-framework-Metal, which
Apple's compiler made from the SDK, and Apple's metal-cpp headers in mlx-metal. Exits with 1 if
anything is wrong or unconfirmed, with 77 if the packages cannot be downloaded.
"""

import argparse
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from apple import authority, ours  # noqa: E402
from apple.macho import Protocol  # noqa: E402

# metal-cpp spells these otherwise than the SDK: block types, one const, one out-parameter.
CPP_SPELLING = {
    "-addCompletedHandler:", "-addScheduledHandler:",
    "-newBufferWithBytesNoCopy:length:options:deallocator:",
    "-newComputePipelineStateWithDescriptor:options:reflection:error:",
    "-newComputePipelineStateWithDescriptor:options:completionHandler:",
    "-notifyListener:atValue:block:",
}  # fmt: skip
# The language's own: neither authority describes Metal's base classes in full.
LANGUAGE = {
    "+load", "+initialize", "+new", "+alloc", "+class", "-init", "-dealloc", "-copy", "-isEqual:",
    "-hash", "-superclass", "-class", "-self", "-isKindOfClass:", "-conformsToProtocol:",
    "-respondsToSelector:", "-retain", "-release", "-autorelease", "-retainCount", "-description",
    "-copyWithZone:", "-countByEnumeratingWithState:objects:count:",
    "-objectAtIndexedSubscript:", "-setObject:atIndexedSubscript:",
}  # fmt: skip


@dataclass
class Report:
    exact: int = 0  # byte-identical to the SDK's metadata
    agreed: int = 0  # equal to metal-cpp's types
    values: int = 0
    old: int = 0  # confirmed to be in macOS 14
    named: int = 0  # Foundation's, by selector only
    language: int = 0
    wrong: list[str] = field(default_factory=list)


def without_offsets(encoding: str) -> str:
    return re.sub(r"\d+", "", re.sub(r"@\?<[^>]*(?:<[^>]*>[^>]*)*>", "@?", encoding))


def flat(text: str) -> str:
    return " ".join(text.split())


class Check:
    def __init__(self, headers: ours.Headers, authorities: authority.Authorities):
        self.headers, self.known = headers, authorities
        self.report = Report()

    def run(self) -> Report:
        for name, protocol in sorted(self.headers.protocols.items()):
            if name in ("NSObject", "NSCopying", "NSFastEnumeration"):
                self.report.language += len(protocol.methods)
                continue
            self._parents(name, protocol)
            self._methods(name, protocol)
        for name, methods in sorted(self.headers.classes.items()):
            self._methods(name, methods)
            if name not in self.known.cpp.classes and name != "NSObject":
                self._wrong(f"class {name}: metal-cpp has none")
        self._enums()
        for name in [*self.headers.functions, *self.headers.constants]:
            if not self.known.pyobjc.knows(name):
                self._wrong(f"{name}: unknown")
        return self.report

    def _wrong(self, text: str) -> None:
        self.report.wrong.append(text)

    def _parents(self, name: str, protocol: Protocol) -> None:
        sdk = self.known.pyobjc.protocols.get(name)
        if sdk and sorted(sdk.parents) != sorted(protocol.parents):
            self._wrong(f"{name}: parents are {sdk.parents}, not {protocol.parents}")
        if not sdk and name not in self.known.cpp.protocols and name not in self.known.cpp.methods:
            self._wrong(f"protocol {name}: no authority has it")

    def _methods(self, name: str, protocol: Protocol) -> None:
        sdk = self.known.pyobjc.protocols.get(name)
        cpp = self.known.cpp.methods.get(name, {})
        for method, encoding in protocol.methods.items():
            if method in LANGUAGE:
                self.report.language += 1
                continue
            if sdk:
                self._compare(name, method, encoding, sdk.methods.get(method), "the SDK")
            elif method in CPP_SPELLING and method in cpp:
                self.report.agreed += 1
            else:
                self._compare_cpp(name, method, encoding, cpp.get(method))
            if name.startswith("MTL"):
                self._age(name, method)

    def _compare_cpp(self, name: str, method: str, encoding: str, want: str | None) -> None:
        if want is None and f'b"{name}", b"{method[1:]}"' in flat(self.known.foundation):
            self.report.named += 1
            return
        have = without_offsets(encoding)
        if want:
            want = want.replace("NSErrorDomain", "NSString")
        if want and method[0] == "+":  # instancetype
            own = f'@"{name}"@:'
            have, want = have.replace(own, "@@:", 1), want.replace(own, "@@:", 1)
        self._compare(name, method, have, want, "metal-cpp")

    def _compare(self, name: str, method: str, have: str, want: str | None, who: str) -> None:
        if want is None:
            self._wrong(f"{name} {method}: {who} has no such selector")
        elif have != want:
            self._wrong(f"{name} {method}: {who} says {want}, we say {have}")
        elif who == "the SDK":
            self.report.exact += 1
        else:
            self.report.agreed += 1

    def _age(self, name: str, method: str) -> None:
        """Newer than macOS 14 if and only if our declaration says so, as far as is known."""
        says_newer = f"{name} {method}" in self.headers.newer
        old, new = self.known.pyobjc14, self.known.pyobjc
        if name in new.protocols and name in old.protocols:
            is_newer = method not in old.protocols[name].methods
        elif name in self.headers.newer:
            is_newer = not old.knows(name)
        elif new.knows(method[1:]):
            is_newer = not old.knows(method[1:])
        else:
            return
        if is_newer != says_newer:
            state = "is newer than macOS 14" if is_newer else "is in macOS 14 already"
            self._wrong(f"{name} {method}: {state}, API_AVAILABLE says otherwise")
        else:
            self.report.old += not is_newer

    def _enums(self) -> None:
        for name, kind in self.headers.enums.items():
            want = self.known.cpp.enums.get(name)
            if want != kind:
                self._wrong(f"enum {name}: metal-cpp has type {want}, we have {kind}")
        for name, value in self.headers.values.items():
            want = self.known.pyobjc.values.get(name)
            if want is None and name.startswith("NS"):
                self.report.language += 1
            elif want != value:
                self._wrong(f"{name}: is {want}, we have {value}")
            else:
                self.report.values += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", type=Path, default=HERE / "include")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--lld", default="ld64.lld-19")
    args = parser.parse_args()
    for tool in (args.clang, args.lld):
        if not shutil.which(tool):
            print(f"skipped: no {tool}")
            return 77
    try:
        known = authority.load(args.cache)
    except authority.Unreachable as reason:
        print(f"skipped: {reason}")
        return 77
    report = Check(ours.load(args.include, args.clang, args.lld), known).run()
    print(*report.wrong, sep="\n")
    print(
        f"{report.exact} methods byte-identical to the SDK's metadata, {report.agreed} agree with "
        f"metal-cpp, {report.values} enum values equal, {report.old} confirmed in macOS 14, "
        f"{report.named} by name, {report.language} of the language itself; "
        f"{len(report.wrong)} wrong"
    )
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
