"""Downloads from a hub on this machine: what is fetched, reported, reused, and refused."""

import json
import os
import subprocess
import sys
import textwrap

from api.fake_hub import SHA, serve

SHARDS = {
    "model-00001-of-00002.safetensors": b"a" * 5000,
    "model-00002-of-00002.safetensors": b"b" * 3000,
}
INDEX = {"weight_map": dict(zip("xy", SHARDS, strict=True))}
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "chat_template.jinja": b"x",
    "model.safetensors.index.json": json.dumps(INDEX).encode(),
    **SHARDS,
    "consolidated.safetensors": b"c" * 9000,
    "pytorch_model.bin": b"d" * 9000,
    "README.md": b"e",
}


def run(code: str, endpoint: str, home, **env):
    """Run in a fresh process: the hub library reads its settings when imported."""
    script = "import json\nfrom butter import hub\n" + textwrap.dedent(code)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    clean |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "NO_PROXY": "*", **env}
    clean["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=clean, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


RESOLVE = """
seen = []
files = hub.resolve("org/name", on_progress=lambda done, total: seen.append([done, total]))
print(json.dumps({"path": str(files.path), "weights": [w.name for w in files.weights],
                  "all": sorted(p.name for p in files.path.iterdir()), "seen": seen}))
"""


def test_only_what_is_needed_is_downloaded_and_then_kept(tmp_path):
    with serve("org/name", FILES) as (endpoint, asked):
        got = run(RESOLVE, endpoint, tmp_path)
        assert got["weights"] == list(SHARDS) and got["path"].endswith(SHA)
        unwanted = {"consolidated.safetensors", "pytorch_model.bin", "README.md"}
        assert set(got["all"]) == set(FILES) - unwanted
        done, total = got["seen"][-1]
        assert done == total >= 8000
        asked.clear()
        run(RESOLVE, endpoint, tmp_path)
        assert not [p for p in asked if "/resolve/" in p]
    again = run(RESOLVE, endpoint, tmp_path, HF_HUB_OFFLINE="1")
    assert again["weights"] == list(SHARDS)
    # Without the setting, and with the hub gone, the cache serves as well.
    assert run(RESOLVE, endpoint, tmp_path)["weights"] == list(SHARDS)


def test_one_gguf_of_several_is_downloaded(tmp_path):
    files = {"m.Q4_0.gguf": b"a" * 100, "m.Q8_0.gguf": b"b" * 200}
    code = """
    found = [hub.resolve(name) for name in ("org/name:Q8_0", "org/name/m.Q8_0.gguf")]
    print(json.dumps([[f.kind, f.path.name, f.path.stat().st_size] for f in found]))
    """
    with serve("org/name", files) as (endpoint, asked):
        assert run(code, endpoint, tmp_path) == [["gguf", "m.Q8_0.gguf", 200]] * 2
        assert not any("Q4_0" in p for p in asked)


WRONG = {
    "org/other": "no such repository",
    "org/name": "no config.json in this repository. Name one of its GGUF files",
    "org/name:Q2_K": "names no file: m.Q4_0.gguf",
    "org/name/x.gguf": "no such file",
}


def test_what_is_not_there_is_named(tmp_path):
    code = f"""
    from butter.errors import ConfigError
    said = []
    for name in {list(WRONG)}:
        try:
            hub.resolve(name)
        except ConfigError as error:
            said.append(str(error))
    print(json.dumps(said))
    """
    with serve("org/name", {"m.Q4_0.gguf": b"a"}) as (endpoint, _):
        for said, words in zip(run(code, endpoint, tmp_path), WRONG.values(), strict=True):
            assert words in said
