"""butter doctor: what this machine has, and whether this build computes right on it."""

import json
from dataclasses import asdict
from typing import Any

import click

from .progress import Bar

# Of failures in the text report; --json has all.
SHOWN = 60  # lines
NAMED = 6  # kernels of one message
QUOTED = 10  # further lines of a message


@click.command("doctor")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, metal or cuda.")
@click.option("--threads", type=click.IntRange(1, 1024))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(device: str, threads: int | None, as_json: bool) -> int:
    """Check this machine and this build; paste the report into a bug report.

    Compiles and runs every kernel, and a tiny model, in all three dispatch modes.
    """
    facts = gather(device, threads)
    click.echo(json.dumps(facts) if as_json else "\n".join(lines(facts)))
    return 0 if facts["ok"] else 1


def gather(device: str, threads: int | None) -> dict[str, Any]:
    """Everything of the report; never raises an Exception."""
    from ..selftest import facts
    from ..selftest.run import run

    with Bar("testing") as bar:
        report = run(device, threads, on_progress=bar.count)
    tested = {o.item for o in report.outcomes}
    return {
        **facts.gather(report.device, report.others),
        "device": report.device,
        "wanted": device,
        "error": report.error,
        "items": len(tested),
        "checks": [asdict(o) for o in report.outcomes],
        "seconds": report.seconds,
        "ok": report.is_good,
    }


def lines(facts: dict[str, Any]) -> list[str]:
    """The report as text."""
    out = [f"butter {facts['butter']}, Python {facts['python']}, {facts['platform']}"]
    out.append(", ".join(f"{k} {v}" for k, v in facts["packages"].items()))
    out += [f"{name}: {value}" for name, value in facts["machine"].items()]
    if device := facts["device"]:
        out.append(
            f"device {device['kind']}: {device['name']}, {device['isa']}, warp {device['warp']}, "
            f"{device['threads']} threads, {device['memory_bytes'] / 2**30:.1f} GiB"
        )
    else:
        out.append(f"device {facts['wanted']}: could not be opened")
    out += [f"  {name}: {value}" for name, value in facts["sources"].items()]
    out += verdict(facts)
    return out


def verdict(facts: dict[str, Any]) -> list[str]:
    checks = facts["checks"]
    bad = [c for c in checks if c["status"] != "ok"]
    out = []
    for mode in dict.fromkeys(c["mode"] for c in checks if c["mode"] != "all"):
        rows = [c for c in checks if c["mode"] == mode]
        good = [c["error"] for c in rows if c["status"] == "ok"]
        out.append(
            f"  {mode:18} {len(good)} of {len(rows)} good, "
            f"largest error {max(good, default=0):.0%} of what is allowed"
        )
    out += failures(bad)
    if facts["error"]:
        out.append(f"error: {facts['error']}")
    end = "all good" if facts["ok"] else "SOMETHING IS WRONG, please report it"
    if not facts["device"]:
        end = "nothing was tested"
    out.append(f"{facts['items']} tests in {facts['seconds']:.1f} s: {end}")
    return out


def failures(bad: list[dict[str, Any]]) -> list[str]:
    """Each message once, with the kernels and modes that it concerns.

    Messages are one where their first lines are: a file that does not compile concerns many
    kernels.
    """
    texts: dict[str, str] = {}
    modes: dict[tuple[str, str, str], list[str]] = {}
    for c in bad:
        head = c["message"].partition("\n")[0]
        texts.setdefault(head, c["message"])
        modes.setdefault((c["status"], c["item"], head), []).append(c["mode"])
    groups: dict[tuple[str, str, str], list[str]] = {}
    for (status, item, head), where in modes.items():
        groups.setdefault((status, ", ".join(where), head), []).append(item)
    out = []
    for (status, shown, head), items in groups.items():
        names = ", ".join(items[:NAMED])
        if len(items) > NAMED:
            names += f" and {len(items) - NAMED} more"
        first, *rest = texts[head].strip().splitlines() or [""]
        out.append(f"  {status.upper()} {names} ({shown}): {first}")
        out += [f"      {line}" for line in rest[:QUOTED]]
    if len(out) > SHOWN:
        out = [*out[:SHOWN], f"  … and {len(out) - SHOWN} lines more; --json has all"]
    return out
