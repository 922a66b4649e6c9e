"""The smallest model with all the parts of a decode step: a Markov chain over a table of logits."""

from functools import partial

import numpy as np

from butter import _native
from butter.step import step_words

MODES = ["eager", "argument_buffers", "icb"]
VOCAB = 96
BLOCKS = 3  # of 32 tokens
WIDE = (64, 1024)  # an addition of this shape is worth sharing among threads


class Chain:
    """Token -> its row of the table -> sampled token, beside a ladder of additions.

    Each step also adds ones to `ladder`, so the host can tell how many steps ran and that every
    group of every dispatch ran exactly once.
    """

    def __init__(self, device, seed=0, rungs=4):
        rng = np.random.default_rng(seed)
        self.device = device
        self.table = rng.standard_normal((VOCAB, VOCAB)).astype(np.float32)
        self.next = device.allocate(4)
        self.steps = device.allocate(4 * WIDE[0] * WIDE[1])
        self.plan = self._record(rungs)

    def _record(self, rungs):
        p = _native.Program(self.device)
        table = self._buffer(p, self.table, "f32")
        self.counts = self.device.allocate(4 * VOCAB)
        counts = p.buffer(self.counts, 0, 4 * VOCAB, "u32")
        bias = p.buffer(self.device.allocate(4 * VOCAB), 0, 4 * VOCAB, "f32")
        token = p.buffer(self.next, 0, 4, "i32")

        logits = p.activation(4 * VOCAB, "f32")
        p.dispatch("gather__f32_f32", [table, token, logits], dims=[VOCAB, VOCAB, 1])
        self.logits = logits
        p.keep(logits)

        rows, n = WIDE
        ones = self._buffer(p, np.ones(WIDE, np.float32), "f32")
        steps = p.buffer(self.steps, 0, 4 * rows * n, "f32")
        rung = p.activation(4 * rows * n, "f32")
        p.dispatch("add__f32", [steps, ones, rung], dims=[rows, n])
        zeros = self._buffer(p, np.zeros(WIDE, np.float32), "f32")
        for _ in range(rungs):
            above = p.activation(4 * rows * n, "f32")
            p.dispatch("add__f32", [rung, zeros, above], dims=[rows, n])
            rung = above
        p.dispatch("add__f32", [rung, zeros, steps], dims=[rows, n])

        for dispatch in sampling(p, logits, counts, bias, token):
            dispatch()
        return p.finish()

    def _buffer(self, program, values, dtype):
        memory = self.device.allocate(values.nbytes)
        memory.write(values)
        return program.buffer(memory, 0, values.nbytes, dtype)

    def reset(self, token):
        self.next.write(np.int32(token).tobytes())
        self.counts.write(np.zeros(VOCAB, np.uint32))
        self.steps.write(np.zeros(WIDE, np.float32))

    def steps_run(self):
        """How many steps the ladder counted; fails unless all its elements agree."""
        counted = self.steps.array("f32", WIDE)
        assert counted.min() == counted.max()
        return int(counted[0, 0])

    def greedy(self, token, count):
        """The oracle at temperature 0."""
        tokens = []
        for _ in range(count):
            token = int(np.argmax(self.table[token]))
            tokens.append(token)
        return tokens


def sampling(program, logits, counts, bias, token):
    """The dispatches from one row of logits to its token, for the caller to record."""
    tops, sums, masses = (program.activation(4 * BLOCKS, "f32") for _ in range(3))
    span, end = program.activation(8, "f32"), program.activation(4, "u32")
    row, kept = [logits, counts, bias], [tops, span, end]
    for name, tensors in {
        "sample_tops": [*row, tops, sums],
        "sample_border": [*row, tops, sums, span, end],
        "sample_masses": [*row, *kept, masses],
        "sample_draw": [logits, bias, *kept, masses, token, counts],
    }.items():
        yield partial(program.dispatch, name, tensors, dims=[1, VOCAB])


def greedy_words():
    return step_words(repetition=1.0, sample=1, rows=1)


def random_words(seed):
    return step_words(temperature=1.0, repetition=1.0, top_p=1.0, seed_lo=seed, sample=1, rows=1)
