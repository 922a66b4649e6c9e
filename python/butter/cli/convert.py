"""butter convert: a model as a new, quantized checkpoint."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from . import interrupts
from .stdio import check_text

BITS = click.Choice(["2", "3", "4", "5", "6", "8"])
GROUPS = click.Choice(["32", "64", "128"])


@click.command("convert")
@click.argument("model")
@click.argument("out")
@click.option("--bits", type=BITS, default="4", show_default=True, help="Of each weight's code.")
@click.option("--group-size", type=GROUPS, default="32", show_default=True,
              help="Inputs that share a scale and a bias (32 bits).")  # fmt: skip
@click.option("--head-bits", type=BITS, help="Of the embedding and the head [default: --bits].")
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--offline", is_flag=True, default=None, help="Use only what is cached.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(model: str, out: str, **given: Any) -> None:
    """Write MODEL, quantized, into the new folder OUT.

    Any engine that reads MLX's affine form can load it. Matrices that are quantized already and
    take no more memory than the new form keep their codes.
    """
    check_text("OUT", out)
    form = {"bits": given["bits"], "group_size": given["group_size"],
            "head_bits": given["head_bits"]}  # fmt: skip
    quantize = {name: int(value) for name, value in form.items() if value is not None}

    from ..quantize.convert import convert

    interrupts.raise_once()  # so that what is half written goes
    interrupts.leave_in_order()
    with progress() as report:
        done = convert(
            model, out, quantize=quantize, revision=given["revision"],
            offline=given["offline"], on_progress=report,
        )  # fmt: skip
    if given["as_json"]:
        import json

        counts = {"recoded": done.recoded, "kept": done.kept, "indivisible": done.indivisible}
        facts = {"path": str(done.path), "files": list(done.files), "bytes": done.nbytes}
        click.echo(json.dumps({**facts, **counts}))
        return
    click.echo(
        f"{done.path}: {done.nbytes / 1e6:.1f} MB in {len(done.files)} weight "
        f"file{'s' if len(done.files) > 1 else ''}; {done.recoded} matrices quantized, "
        f"{done.kept} kept their codes, {done.indivisible} are as stored"
    )


@contextlib.contextmanager
def progress() -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal's stderr."""
    if not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=100, label="converting", file=sys.stderr) as bar:
        yield lambda done, total: bar.update(100 * done // max(total, 1) - bar.pos)
