"""Butter through its public API: what a user gets, detokenizing included."""

import protocol

import butter

MODES = ("eager", "argument_buffers", "icb")


class Butter:
    def __init__(self, options):
        self._model = butter.Model.load(
            options.model, threads=options.threads, max_context=options.context, dispatch="icb"
        )
        self._session = self._model.session()
        self.vocab = self._model.config.vocab_size
        engine, device = self._model._need().engine, self._model.device
        self.facts = {
            "version": f"butter {butter.__version__}",
            "weight_bytes": engine.decode_weight_bytes,
            "kv_bytes_per_position": engine.kv_bytes_per_position,
            "isa": device.isa,
        }

    def prefill(self, ids):
        self._session.truncate(0)
        return protocol.timed(lambda: self._generate(ids, 1))

    def decode(self, ids, count):
        self._keep(protocol.common(self._session.tokens, ids))
        if len(self._session.tokens) < len(ids) - 1:
            self._generate(ids[len(self._session.tokens) :], 1)
        self._keep(len(ids) - 1)
        clock = protocol.Clock()
        # One token more than is counted: the first ends the prompt, by a step like the others.
        result = self._generate(ids[-1:], count + 1)
        cpu = clock.read().cpu_s * count / (count + 1)
        return protocol.Times(result.stats.decode_s, cpu)

    def batch(self, prompts, count):
        clock = protocol.Clock()
        results = self._model.generate_batch(
            prompts, rows=len(prompts), max_tokens=count, temperature=0, ignore_eos=True
        )
        times, decode_s = clock.read(), results.stats.decode_s
        # Reading the prompts keeps the cores as busy as decoding does.
        return protocol.Times(decode_s, times.cpu_s * decode_s / times.wall_s)

    def modes(self, tokens: int, repeats: int) -> dict:
        """Each way of submitting a step, in turn: tok/s and the host's time per token."""
        from butter.cli.bench import time_decode
        from butter.sequence import Sequence

        engine = self._model._need().engine
        sequences = {mode: Sequence(engine, mode) for mode in MODES}
        rows: dict[str, list[dict]] = {mode: [] for mode in MODES}
        for sequence in sequences.values():
            time_decode(sequence, 1, 4)
        for _ in range(repeats):
            for mode, sequence in sequences.items():
                rows[mode].append(time_decode(sequence, 1, tokens))
        plan = sequences["icb"].decode_plan
        counters = sequences["icb"].decode.stats  # all that the native side counts
        return {
            "modes": rows,
            "dispatches": plan.dispatches,
            "phases": plan.phases,
            "layers": engine.text.num_hidden_layers,
            "counters": {k: v for k, v in counters.items() if isinstance(v, int | float)},
        }

    def profile(self, depth: int, repeats: int) -> dict:
        """Device time of one decode step by kernel, each dispatch alone: medians, µs."""
        from statistics import median

        from butter.layers.attention import MAX_SPLITS, SPLIT_LEN
        from butter.sequence import Sequence
        from butter.step import step_words

        engine = self._model._need().engine
        sequence = Sequence(engine, "eager")
        sequence.fill(protocol.random_ids(depth, self.vocab, 3))
        splits = min(MAX_SPLITS, -(-(depth + 1) // SPLIT_LEN))
        words = step_words(
            pos=depth, rows=1, kv_len=depth + 1, splits=splits, top_p=1, repetition=1, sample=1
        )
        names = [row[0].split("__")[0] for row in sequence.decode_plan.listing()]
        runs = []
        for _ in range(repeats):
            total: dict[str, float] = {}
            for name, ns in zip(names, sequence.decode.profile(words, []), strict=True):
                total[name] = total.get(name, 0.0) + ns / 1e3
            runs.append(total)
        return {"kernels": {n: [names.count(n), median(r[n] for r in runs)] for n in runs[0]}}

    def _keep(self, length: int) -> None:
        """Forget what the session holds beyond `length`."""
        self._session.truncate(min(length, len(self._session.tokens)))

    def _generate(self, ids, count):
        return self._session.generate(ids, max_tokens=count, temperature=0, ignore_eos=True)


if __name__ == "__main__":
    protocol.serve(Butter, protocol.arguments(__doc__))
