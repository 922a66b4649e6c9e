"""An engine without a model, for the tests: its file says what it can and when it fails."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "peers"))

import protocol  # noqa: E402  (found through the line above)


class Fake:
    vocab = 1000

    def __init__(self, options):
        self._does = json.loads(Path(options.model).read_text())
        self.facts = {"version": "fake 1", "weight_bytes": 1000, "kv_bytes_per_position": 10}
        if self._does.get("batch"):
            self.batch = lambda prompts, count: self._work("batch", len(prompts) * count)

    def prefill(self, ids):
        return self._work("prefill", len(ids))

    def decode(self, ids, count):
        return self._work("decode", len(ids))

    def _work(self, kind, size):
        if self._does.get("dies_at") == [kind, size]:
            raise RuntimeError("the engine broke")
        return protocol.timed(lambda: time.sleep(0.001))


if __name__ == "__main__":
    protocol.serve(Fake, protocol.arguments(__doc__))
