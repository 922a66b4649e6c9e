"""The passes in order: each changes a Func in place and leaves it legal for `verify`."""

from ..ir import Func
from ..verify import verify
from . import constfold, fusion, schedule, tilelowering, typecheck, vectorize

# name -> run(func, target); target is "cpu", "cuda" or "msl".
PIPELINE = {
    "TypeCheck": typecheck.run,
    "ConstFold": constfold.run,
    "TileLowering": tilelowering.run,
    "Fusion": fusion.run,
    "Schedule": schedule.run,
    "Vectorize": vectorize.run,
}


def lower(func: Func, target: str, until: str = "Vectorize") -> Func:
    """Run the pipeline up to and including `until`, checking legality after every pass."""
    for name, run in PIPELINE.items():
        run(func, target)
        verify(func, name, target)
        if name == until:
            break
    return func
