"""butter models: names that load without a download."""

import click


@click.command("models")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """List aliases, and the models in the Hugging Face cache."""
    import json

    from ..hub import aliases, cached_models

    names, cached = aliases(), cached_models()
    if as_json:
        models = [
            {"id": m.id, "kind": m.kind, "path": str(m.path), "size_bytes": m.size_bytes}
            for m in cached
        ]
        click.echo(json.dumps({"aliases": names, "cached": models}))
        return
    for name, target in names.items():
        click.echo(f"{name:12} {target}")
    for model in cached:
        click.echo(f"{model.size_bytes / 1e6:8.0f} MB  {model.id}")
    if not cached:
        click.echo("no models in the Hugging Face cache", err=True)
