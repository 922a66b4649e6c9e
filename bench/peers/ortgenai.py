"""onnxruntime-genai on a folder of its model builder; the token is picked in its native code."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime_genai as ort
import protocol


class OrtGenAi:
    def __init__(self, options):
        self._folder = shadow(Path(options.model), options.threads)
        self._model = ort.Model(self._folder.name)
        config = json.loads((Path(options.model) / "genai_config.json").read_text())
        self.vocab = config["model"]["vocab_size"]
        version = f"onnxruntime-genai {ort.__version__}"
        self.facts = {"version": version, **protocol.made_facts(options.model)}
        self._generator, self._room, self._held = None, 0, []
        self._fit(1)

    def prefill(self, ids):
        self._fit(len(ids) + 1)
        self._keep(0)

        def work():
            self._append(ids)
            self._generator.generate_next_token()

        times = protocol.timed(work)
        self._held = ids
        return times

    def decode(self, ids, count):
        self._fit(len(ids) + count + 1)
        self._keep(min(protocol.common(self._held, ids), len(ids) - 1))
        self._append(ids[len(self._held) :])
        self._held = ids
        self._generator.generate_next_token()

        def steps():
            for _ in range(count):
                self._generator.generate_next_token()

        return protocol.timed(steps)

    def batch(self, prompts, count):
        generator = self._make(len(prompts[0]) + count + 1, len(prompts))
        generator.append_tokens(np.array(prompts, np.int32))
        generator.generate_next_token()

        def steps():
            for _ in range(count):
                generator.generate_next_token()

        return protocol.timed(steps)

    def _fit(self, positions: int) -> None:
        """Make a cache with that much room; the model shares one of a fixed size."""
        if positions > self._room:
            self._room, self._held = protocol.room(positions), []
            self._generator = None
            self._generator = self._make(self._room, 1)

    def _make(self, positions: int, sequences: int):
        params = ort.GeneratorParams(self._model)
        # The least length keeps it from ending early.
        params.set_search_options(
            max_length=positions, min_length=positions, batch_size=sequences, do_sample=False
        )
        return ort.Generator(self._model, params)

    def _keep(self, length: int) -> None:
        """Forget what the cache holds beyond `length`."""
        self._generator.rewind_to(length)
        self._held = self._held[:length]

    def _append(self, ids: list[int]) -> None:
        self._generator.append_tokens(np.array([ids], np.int32))


def shadow(model: Path, threads: int) -> tempfile.TemporaryDirectory:
    """A folder of links whose configuration names the threads: there is no other way to say it."""
    folder = tempfile.TemporaryDirectory(prefix="butter-ort-")
    for path in model.resolve().iterdir():
        if path.name != "genai_config.json":
            os.symlink(path, Path(folder.name) / path.name)
    config = json.loads((model / "genai_config.json").read_text())
    session = config["model"]["decoder"]["session_options"]
    session |= {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
    (Path(folder.name) / "genai_config.json").write_text(json.dumps(config))
    return folder


if __name__ == "__main__":
    protocol.serve(OrtGenAi, protocol.arguments(__doc__))
