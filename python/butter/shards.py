"""Which safetensors files make up a checkpoint folder."""

from pathlib import Path, PurePosixPath

from .errors import FileFormatError, WeightError
from .jsonfile import read_json

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_SHARDS = 10_000


def shard_names(folder: Path) -> list[str]:
    """Names that the folder's index lists, or the one name of an unsharded checkpoint."""
    index = folder / INDEX
    if not index.is_file():
        return [SINGLE]
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise FileFormatError(
            f"[hub] {index}: weight_map must be an object of tensor name to file name, "
            f"got {type(weight_map).__name__}"
        )
    names = set()
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or not is_plain_name(name):
            raise WeightError(
                f"[hub] {index}: tensor {tensor!r} lies in {name!r}; need the name of a "
                ".safetensors file in the same folder"
            )
        names.add(name)
    if len(names) > MAX_SHARDS:
        raise FileFormatError(f"[hub] {index}: got {len(names)} shards, need at most {MAX_SHARDS}")
    return sorted(names)


def is_plain_name(name: str) -> bool:
    """True if the name stays in its folder on every system."""
    plain = PurePosixPath(name).name == name and "\\" not in name and ":" not in name
    return plain and "\0" not in name and name.endswith(".safetensors")


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, all present and none to spare."""
    present = {p.name for p in folder.glob("*.safetensors")}
    names = shard_names(folder)
    if not (folder / INDEX).is_file() and SINGLE not in present and len(present) == 1:
        names = sorted(present)
    missing = [n for n in names if n not in present]
    if missing:
        raise WeightError(
            f"[hub] {folder}: {len(missing)} of {len(names)} weight files are missing: "
            f"{', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}; "
            f"got {', '.join(sorted(present)) or 'no .safetensors file'}."
        )
    # Other formats may lie beside (consolidated.safetensors); only a second "model*" is ambiguous.
    surplus = sorted(n for n in present - set(names) if n.startswith("model"))
    if surplus:
        raise WeightError(
            f"[hub] {folder}: weight files that {INDEX if len(names) > 1 else 'nothing'} lists: "
            f"{', '.join(surplus[:3])}. Remove them, or restore the index that names them."
        )
    return [folder / n for n in names]
