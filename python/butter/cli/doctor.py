"""butter doctor: what this machine has, and whether this build computes right on it."""

import platform
import sys
import time
from typing import Any

import click


@click.command("doctor")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, metal or cuda.")
@click.option("--threads", type=click.IntRange(1, 1024))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(device: str, threads: int | None, as_json: bool) -> int:
    """Check this machine and this build; paste the report into a bug report."""
    facts = gather(device, threads)
    if as_json:
        import json

        click.echo(json.dumps(facts))
    else:
        show(facts)
    return 0 if facts["ok"] else 1


def gather(name: str, threads: int | None) -> dict[str, Any]:
    import butter

    from .. import selftest
    from ..loading import open_device
    from ..manifest import manifest

    device = open_device(name, threads)
    start = time.perf_counter()
    checks = selftest.run(device)
    agree = all(c.tokens == checks[0].tokens for c in checks)
    return {
        "butter": butter.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages(),
        "device": dict(device.info),
        "others": other_devices(),
        "kernels": len(device.kernels()),
        "step_words": len(manifest().step),
        "checks": [{"mode": c.mode, "max_error": c.max_error, "ok": c.is_good} for c in checks],
        "tokens_agree": agree,
        "seconds": time.perf_counter() - start,
        "ok": agree and all(c.is_good for c in checks),
    }


def packages() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("numpy", "tokenizers", "jinja2", "huggingface-hub", "nanobind-backend"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def other_devices() -> dict[str, str]:
    """Each kind of GPU: its name, or why it cannot be used."""
    from .. import _native
    from ..errors import ButterError

    found = {}
    for kind in ("metal", "cuda"):
        try:
            found[kind] = _native.open_device(kind).name
        except ButterError as error:
            found[kind] = str(error)
    return found


def show(facts: dict[str, Any]) -> None:
    device = facts["device"]
    click.echo(f"butter {facts['butter']}, Python {facts['python']}, {facts['platform']}")
    click.echo(", ".join(f"{k} {v}" for k, v in facts["packages"].items()))
    click.echo(
        f"device {device['kind']}: {device['name']}, {device['isa']}, warp {device['warp']}, "
        f"{device['threads']} threads, {device['memory_bytes'] / 2**30:.1f} GiB"
    )
    for kind, what in facts["others"].items():
        click.echo(f"  {kind}: {what}")
    click.echo(f"{facts['kernels']} kernels")
    for check in facts["checks"]:
        verdict = "ok" if check["ok"] else "WRONG"
        click.echo(f"  {check['mode']:18} max error {check['max_error']:.2g}  {verdict}")
    click.echo(f"  the modes {'agree' if facts['tokens_agree'] else 'DISAGREE'} on every token")
    click.echo("all good" if facts["ok"] else "SOMETHING IS WRONG: please report it", err=False)
    sys.stdout.flush()
