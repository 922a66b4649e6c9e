"""butter inspect: a model's files, without loading its weights."""

from collections import Counter
from typing import Any

import click

from ..errors import ConfigError


@click.command("inspect")
@click.argument("model")
@click.option("--tensors", is_flag=True, help="List every tensor.")
@click.option("--template", is_flag=True, help="Print the chat template and nothing else.")
@click.option("--revision", help="Branch, tag or commit on the hub.")
@click.option("--offline", is_flag=True, default=None, help="Use only what is cached.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(model: str, **given: Any) -> None:
    """Show MODEL's config, weights, tokenizer and template."""
    facts = gather(model, given["revision"], given["offline"], given["tensors"])
    sources = facts.pop("sources")
    if given["template"] and not sources:
        raise ConfigError(f"[template] {model} has no chat template")
    if given["template"]:
        facts["template_text"] = sources
    if given["template"] and not given["as_json"]:
        show_templates(sources)
    elif given["as_json"]:
        import json

        click.echo(json.dumps(facts, default=str))
    else:
        show(facts)


def gather(name: str, revision: str | None, offline: bool | None, tensors: bool) -> dict[str, Any]:
    from .. import hub
    from ..checkpoint import Checkpoint
    from ..config import load_config, open_gguf
    from ..loading import make_prompter
    from ..registry import find_family

    files = hub.resolve(name, revision=revision, offline=offline)
    gguf = open_gguf(files) if files.kind == "gguf" else None
    config = load_config(files, gguf)
    checkpoint = Checkpoint(files, config, gguf)
    prompter = make_prompter(files, gguf, config.get("vocab_size") or 0)
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for t in checkpoint.tensors.values():
        count[t.type] += 1
        size[t.type] += t.nbytes
    tokenizer = prompter.tokenizer
    facts = {
        "path": str(files.path),
        "family": find_family(config).name,
        "config": {k: v for k, v in sorted(config.items()) if v is not None},
        "weights": {t: {"tensors": count[t], "bytes": size[t]} for t in count},
        "bytes": checkpoint.nbytes,
        "tokenizer": {
            "vocab_size": tokenizer.vocab_size,
            "bos_id": tokenizer.bos_id,
            "eos_ids": list(tokenizer.eos_ids),
        },
        "chat_template": prompter.template is not None,
        "sources": prompter.template.sources if prompter.template else {},
    }
    if tensors:
        facts["tensors"] = [
            {"name": t.name, "type": t.type, "shape": list(t.shape), "bytes": t.nbytes}
            for t in checkpoint.tensors.values()
        ]
    return facts


def show_templates(sources: dict[str, str]) -> None:
    """The template alone, to be piped; names only where there are several."""
    for name, text in sources.items():
        if len(sources) > 1:
            click.echo(f"--- {name}")
        click.echo(text)


def show(facts: dict[str, Any]) -> None:
    click.echo(f"{facts['path']}\nfamily {facts['family']}\n")
    for key, value in facts["config"].items():
        click.echo(f"  {key:28} {value}")
    click.echo(f"\nweights {facts['bytes'] / 1e6:.1f} MB")
    for kind, row in facts["weights"].items():
        click.echo(f"  {kind:8} {row['tensors']:5} tensors {row['bytes'] / 1e6:10.1f} MB")
    tokenizer = facts["tokenizer"]
    click.echo(
        f"\ntokenizer {tokenizer['vocab_size']} tokens, bos {tokenizer['bos_id']}, "
        f"eos {', '.join(map(str, tokenizer['eos_ids'])) or 'none'}"
    )
    click.echo(f"chat template {'yes' if facts['chat_template'] else 'no'}")
    for t in facts.get("tensors", []):
        click.echo(f"  {t['type']:6} {str(t['shape']):18} {t['bytes']:12}  {t['name']}")
