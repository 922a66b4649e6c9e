"""What the extension must not need."""

import re
from pathlib import Path

from butter import _native

# Mangled names of ios_base, streams and locales.
STREAMS = re.compile(
    rb"_ZNK?St(8ios_base|6locale|\d+basic_[io]?f?stream)|_ZNS[ios][A-Z]|ostream_insert"
)


def test_the_extension_uses_no_streams():
    # With the C++ library linked into it, nothing initializes their locales: a crash at first use.
    found = STREAMS.findall(Path(_native.__file__).read_bytes())
    assert not found
