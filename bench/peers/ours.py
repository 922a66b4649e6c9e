"""Butter through its public API: what a user gets, detokenizing included."""

import protocol

import butter


class Butter:
    def __init__(self, options: protocol.Options):
        context = max(options.prefill, options.depth) + options.decode + 64
        self._model = butter.Model.load(
            options.model, threads=options.threads, max_context=context, dispatch="icb"
        )
        self.vocab = self._model.config.vocab_size
        self.name = "butter"
        self._generate([5], 1)

    def prefill(self, ids):
        return protocol.timed(lambda: self._generate(ids, 1))[0]

    def decode(self, ids, count):
        # The first token comes out of the prompt's pass, so one more is asked for.
        return self._generate(ids, count + 1).stats.decode_s

    def _generate(self, ids, count):
        return self._model.generate(ids, max_tokens=count, temperature=0, ignore_eos=True)


if __name__ == "__main__":
    options = protocol.parse(__doc__)
    load_s, engine = protocol.timed(lambda: Butter(options))
    protocol.run(engine, options, load_s)
