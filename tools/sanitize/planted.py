"""Faults that the sanitizer of run.sh must report, or its silence means nothing.

    python planted.py FAULT DEVICE       FAULT: race, overflow or leak
"""

import ctypes
import sys
import time

from butter import _native
from native.chain import Chain, greedy_words

PATIENCE_S = 60  # on a busy machine; the report ends the process


def race(device):
    """The host reads what a kernel of a step in flight writes."""
    chain = Chain(device)
    chain.reset(7)
    replay = chain.plan.prepare("icb")
    ticket = replay.submit(greedy_words())
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:  # wherever the step is by then, nothing tells the host so
        chain.next.read()
        time.sleep(0.1)
    replay.wait(ticket)


def overflow(device):
    """One byte past the end of a buffer."""
    memory = device.allocate(64)
    ctypes.memset(memory.array("u8", (64,)).ctypes.data, 0, 65)


def leak(device):
    """A block that nothing refers to."""
    libc = ctypes.CDLL(None)
    libc.malloc(1000)


if __name__ == "__main__":
    globals()[sys.argv[1]](_native.open_device(sys.argv[2]))
