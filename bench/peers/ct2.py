"""CTranslate2 in int8; it keeps no cache between calls, so every prompt is read anew."""

import json
from pathlib import Path

import ctranslate2
import protocol


class CTranslate2:
    keeps_prompts = False

    def __init__(self, options):
        self._generator = ctranslate2.Generator(
            options.model,
            device="cpu",
            compute_type="int8",
            intra_threads=options.threads,
            inter_threads=1,
        )
        self._words = json.loads((Path(options.model) / "vocabulary.json").read_text())
        self.vocab = len(self._words)
        version = f"ctranslate2 {ctranslate2.__version__}"
        self.facts = {"version": version, **protocol.made_facts(options.model)}

    def prefill(self, ids):
        return protocol.timed(lambda: self._generate([ids], 1))

    def decode(self, ids, count):
        return self.batch([ids], count)

    def batch(self, prompts, count):
        clock = None

        def on_step(step):
            nonlocal clock
            if clock is None:  # the first token ends the prompt's pass
                clock = protocol.Clock()
            return False

        self._generate(prompts, count + 1, on_step)
        return clock.read()

    def _generate(self, prompts, count, callback=None):
        return self._generator.generate_batch(
            [[self._words[i] for i in ids] for ids in prompts],
            max_length=count,
            min_length=count,
            sampling_topk=1,
            beam_size=1,
            include_prompt_in_result=False,
            max_batch_size=0,
            callback=callback,
        )


if __name__ == "__main__":
    protocol.serve(CTranslate2, protocol.arguments(__doc__))
