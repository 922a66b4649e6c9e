"""Our declarations of Metal are Apple's, and the check finds what is wrong."""

import os
import shutil
import subprocess
import sys

import pytest

from softmetal import check_api
from softmetal.build import HERE, need

# What to plant: (header, old, new, what the check says).
WRONG = {
    "a misspelt selector": (
        "MTLComputeCommandEncoder", "setBufferOffset:", "setBufferOffsett:", "no such selector",
    ),
    "a misspelt selector of the device": (
        "MTLDevice", "newCommandQueueWithMax", "newCommandQueueMax", "no such selector",
    ),
    "a wrong integer": (
        "MTLComputeCommandEncoder", "setThreadgroupMemoryLength:(NSUInteger)",
        "setThreadgroupMemoryLength:(uint32_t)", "the SDK says",
    ),
    "a wrong result": ("MTLBuffer", "(void*)contents", "(uint64_t)contents", "metal-cpp says"),
    "a wrong class": (
        "MTLLibrary", "constantValues:(MTLFunctionConstantValues*)",
        "constantValues:(MTLCompileOptions*)", "metal-cpp says",
    ),
    "a method of a class": (
        "MTLComputePipeline", "BOOL supportIndirectCommandBuffers;\n@property(readwrite, copy",
        "BOOL supportsIndirectCommandBuffers;\n@property(readwrite, copy", "no such selector",
    ),
    "a class that is none": (
        "MTLBinaryArchive", "@interface MTLBinaryArchiveDescriptor",
        "@class MTLArchiveDescriptor;\n@interface MTLArchiveDescriptor : NSObject\n@end\n"
        "@interface MTLBinaryArchiveDescriptor", "metal-cpp has none",
    ),
    "a wrong parent": (
        "MTLBlitCommandEncoder", "MTLBlitCommandEncoder <MTLCommandEncoder>",
        "MTLBlitCommandEncoder <NSObject>", "parents are",
    ),
    "a wrong enum value": (
        "MTLLibrary", "MTLDataTypeUInt = 33", "MTLDataTypeUInt = 32", "is 33, we have 32",
    ),
    "an enum name that is none": (
        "MTLResource", "MTLStorageModeShared = 0", "MTLStorageModeSharing = 0", "is None",
    ),
    "a wrong enum type": (
        "MTLDevice", "NS_ENUM(NSInteger, MTLGPUFamily)", "NS_ENUM(NSUInteger, MTLGPUFamily)",
        "has type q",
    ),
    "a new selector said to be old": (
        "MTLCommandBuffer", "useResidencySet:(id<MTLResidencySet>)residencySet "
        "API_AVAILABLE(macos(15.0))", "useResidencySet:(id<MTLResidencySet>)residencySet",
        "is newer than macOS 14",
    ),
    "an old selector said to be new": (
        "MTLComputeCommandEncoder", "offset atIndex:(NSUInteger)index;\n- (void)setBuffers",
        "offset atIndex:(NSUInteger)index API_AVAILABLE(macos(15.0));\n- (void)setBuffers",
        "is in macOS 14 already",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def check():
    """Complaints about a folder of headers."""
    need("clang-19", "ld64.lld-19")
    try:
        known = check_api.authority.load()
    except check_api.authority.Unreachable as reason:
        pytest.skip(str(reason))

    def run(include):
        headers = check_api.ours.load(include, "clang-19", "ld64.lld-19")
        return check_api.Check(headers, known).run()

    return run


def test_without_the_packages_the_check_says_that_it_was_skipped(tmp_path):
    need("clang-19", "ld64.lld-19")
    command = [sys.executable, HERE / "check_api.py", "--cache", tmp_path]
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout.split(":")[0]) == (77, "skipped")


@pytest.fixture
def headers(tmp_path):
    """A copy of our headers, where check_api.py finds objc/objc.h beside them."""
    shutil.copytree(HERE / "include", tmp_path / "include")
    shutil.copytree(HERE / "objcrt/objc", tmp_path / "objcrt/objc")
    return tmp_path / "include"


def test_every_declaration_is_confirmed(check):
    report = check(HERE / "include")
    assert report.wrong == []
    assert report.exact >= 90
    assert report.agreed >= 140
    assert report.values >= 85


@pytest.mark.parametrize("fault", WRONG)
def test_a_planted_error_is_found(check, headers, fault):
    name, old, new, message = WRONG[fault]
    path = next(headers.rglob(f"{name}.h"))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert any(message in complaint for complaint in check(headers).wrong)
