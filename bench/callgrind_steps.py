"""What bench/callgrind.sh counts: greedy steps of a tiny model on one thread.

python bench/callgrind_steps.py FOLDER COUNT
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import butter  # noqa: E402
from support.tiny import checkpoint  # noqa: E402  (found through the line above)

VARIANT = "tied_bf16"


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    path = folder / VARIANT
    if not path.exists():
        checkpoint(VARIANT, folder)
    with butter.Model.load(
        path, device="cpu", threads=1, dispatch="icb", max_context=256, prewarm=False
    ) as model:
        sequence = model._own_sequence()
        sequence.fill(range(3, 12))
        loop = sequence.start(12, butter.SamplingParams(temperature=0.0, seed=0), limit=count)
        assert len(loop.run(count)) == count


if __name__ == "__main__":
    main()
