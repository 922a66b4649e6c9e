import threading

import numpy as np

from butter import _native
from butter.step import step_words

EPS = [10.0**-i for i in range(1, 9)]


def norm(x, eps):
    return x / np.sqrt(np.mean(x.astype(np.float64) ** 2) + eps)


def test_pipelines_with_different_constants_are_kept_apart(device):
    x = np.linspace(-0.01, 0.01, 64, dtype=np.float32)
    program = _native.Program(device)

    def weights(values):
        memory = device.allocate(values.nbytes)
        memory.write(values)
        return program.buffer(memory, 0, values.nbytes, "f32")

    source, ones = weights(x), weights(np.ones(64, np.float32))
    outs = []
    for eps in EPS * 3:
        out = program.activation(256, "f32")
        program.dispatch("rms_norm__f32", [source, ones, out], [eps], [1, 64])
        program.keep(out)
        outs.append(out)
    replay = program.finish().prepare("eager")
    replay.run(step_words())
    for eps, out in zip(EPS * 3, outs, strict=True):
        got = np.frombuffer(replay.read(out), np.float32)
        np.testing.assert_allclose(got, norm(x, eps), rtol=1e-5)


def test_threads_that_miss_at_once_get_right_pipelines():
    device = _native.open_device("cpu", 2)
    x = np.linspace(-0.01, 0.01, 64, dtype=np.float32)
    ones = np.ones(64, np.float32)
    barrier = threading.Barrier(8)
    wrong = []

    def work():
        buffers = [device.allocate(256) for _ in range(3)]
        buffers[0].write(x)
        buffers[1].write(ones)
        barrier.wait()
        for eps in EPS:
            device.run("rms_norm__f32", [(b, 0, 256) for b in buffers], [eps], [1, 64])
            if not np.allclose(buffers[2].array("f32", [64]), norm(x, eps), rtol=1e-5):
                wrong.append(eps)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
