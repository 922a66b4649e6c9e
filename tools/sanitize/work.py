"""What run.sh runs under a sanitizer: tiny models decode and prefill, fail, recover and close.

    python work.py DEVICE
"""

import ctypes
import gc
import os
import sys
import tempfile
import threading
from pathlib import Path

import butter
from butter import _native
from butter.errors import DeviceError
from support.affine import write_pair
from support.tiny import checkpoint, prompts

MODES = ["eager", "argument_buffers", "icb"]
SHORT, LONG = prompts()[1], prompts()[2]
THREADS = 2


def generate(speaker, prompt, count=8, **sampling):
    sampling = {"temperature": 0, **sampling}
    return speaker.generate(prompt, max_tokens=count, ignore_eos=True, **sampling).tokens


class Metal:
    """Faults of the software Metal, and what is alive in it."""

    def __init__(self):
        self._c = ctypes.CDLL("libsoftmetal.so")
        self._c.softmetal_live_objects.restype = ctypes.c_long

    def fail(self, model):
        # The third from now: others are in flight around it.
        self._c.softmetal_plant(b"fail_command_buffer:3")

    def check_at_end(self):
        self._c.softmetal_settle()
        text = ctypes.create_string_buffer(1 << 12)
        self._c.softmetal_live_report(text, ctypes.c_size_t(len(text)))
        alive = self._c.softmetal_live_objects()
        if alive != 1:
            raise SystemExit(f"alive at the end: {text.value.decode()}; need only the device")
        print("alive at the end: the device alone")


class Cpu:
    def fail(self, model):
        model.device.inject_fault("planted")

    def check_at_end(self):
        pass


def together(*calls):
    """Runs them at once, each on a thread of its own; returns what they return."""
    results = [None] * len(calls)

    def run(i):
        results[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def fail_and_recover(model, faults):
    session = model.session()
    want = generate(session, SHORT)
    session.truncate(0)
    faults.fail(model)
    try:
        generate(session, SHORT)
    except DeviceError:
        pass
    else:
        raise SystemExit("the planted failure was not raised")
    assert session.tokens == []
    assert generate(session, SHORT) == want
    session.close()


def cancel(model):
    with model.stream(SHORT, max_tokens=50, temperature=0, ignore_eos=True) as stream:
        next(iter(stream))


def exercise(path, device, mode, faults):
    """Greedy tokens of a long prompt, and everything else that may happen to a model."""
    threads = THREADS if device == "cpu" else None
    with butter.Model.load(path, device=device, dispatch=mode, threads=threads) as model:
        sessions = [model.session() for _ in range(2)]
        decodes = [lambda s=s: generate(s, LONG) for s in sessions]
        one, two, _ = together(*decodes, _native.save_devices)
        assert one == two
        generate(sessions[0], [5], temperature=0.8, top_k=8, seed=3, repetition_penalty=1.1)
        sessions[0].close()  # the other one is closed by the model
        cancel(model)
        fail_and_recover(model, faults)
        model.logits(SHORT)
        return one


def main():
    device = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        os.environ["BUTTER_METAL_CACHE"] = str(folder / "cache")
        dense, coded = checkpoint("bf16_sharded", folder), write_pair(folder, 4, 32)[0]
        _native.open_device(device)  # loads what Metal() looks for
        faults = Metal() if device == "metal" else Cpu()
        for name, path in (("dense", dense), ("4 bits", coded)):
            tokens = set()
            for mode in MODES:
                tokens.add(tuple(exercise(path, device, mode, faults)))
                print(f"{device} {name} {mode}: done", flush=True)
            assert len(tokens) == 1, tokens
    gc.collect()
    faults.check_at_end()


if __name__ == "__main__":
    main()
