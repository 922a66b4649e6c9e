"""Several Markov chains over one table: the smallest program with a step block for each row."""

import numpy as np

from butter import _native
from butter.step import step_words
from native.chain import VOCAB, sampling

ROWS = 3
SCALE = 6.0  # of the logits, so that draws follow the table
SEEDS = [None, 5, 9]
STARTS = [7, 3, 90]


class Chains:
    """A Markov chain for each row over one table: token -> its row -> sampled token."""

    def __init__(self, device, rows=ROWS):
        rng = np.random.default_rng(1)
        self.device, self.rows = device, rows
        self.table = (SCALE * rng.standard_normal((VOCAB, VOCAB))).astype(np.float32)
        self.next = device.allocate(4 * rows)
        self.counts = device.allocate(4 * VOCAB * rows)
        self.plan = self._record()

    def _record(self):
        p = _native.Program(self.device, 1, self.rows)
        memory = self.device.allocate(self.table.nbytes)
        memory.write(self.table)
        table = p.buffer(memory, 0, memory.nbytes, "f32")
        bias = p.buffer(self.device.allocate(4 * VOCAB), 0, 4 * VOCAB, "f32")
        tokens = p.buffer(self.next, 0, 4 * self.rows, "i32")
        logits = p.activation(4 * VOCAB * self.rows, "f32")
        p.dispatch("gather__f32_f32", [table, tokens, logits], dims=[VOCAB, VOCAB, self.rows])
        rows = []
        for row in range(self.rows):
            counts = p.buffer(self.counts, 4 * VOCAB * row, 4 * VOCAB, "u32")
            own = p.view(logits, 4 * VOCAB * row, 4 * VOCAB, "f32")
            token = p.buffer(self.next, 4 * row, 4, "i32")
            rows.append(sampling(p, own, counts, bias, token))
        for stage in zip(*rows, strict=True):  # kernel by kernel, so that rows share phases
            for row, dispatch in enumerate(stage):
                p.block(row)
                dispatch()
        return p.finish()

    def reset(self, tokens):
        self.next.write(np.array(tokens, np.int32))
        self.counts.write(np.zeros(VOCAB * self.rows, np.uint32))

    def loop(self, mode="icb", max_position=1000):
        return _native.BatchLoop(self.plan.prepare(mode), max_position)

    def alone(self, token, words, count):
        """What one sequence brings by itself."""
        single = Chains(self.device, 1)
        single.reset([token])
        loop = _native.DecodeLoop(single.plan.prepare("eager"), [], 10**6)
        loop.start(words, 0, count)
        return loop.run(count)


def words(seed=None):
    greedy = {"repetition": 1.0, "top_p": 1.0}
    return step_words(**greedy) if seed is None else step_words(
        **greedy, temperature=1.0, seed_lo=seed
    )  # fmt: skip


def drain(loop):
    """All that the rows bring, and the order in which they end."""
    brought, order = {}, []
    while loop.running or loop.in_flight:
        tokens, ended = loop.next()
        for row, token in tokens:
            brought.setdefault(row, []).append(token)
        order += ended
    return brought, order
