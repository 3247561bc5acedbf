"""Sentences about files and folders of other programs that npformer.load cannot read."""

from pathlib import Path

from npformer.errors import UserError
from npformer.storage.json_files import read_json

SAVE = "save the model with save_pretrained in transformers, and give that folder"

# what a file is, by the end of its name, and what to do
FILES = {
    ".gguf": "a GGUF file of llama.cpp: give the Hugging Face folder from which it was converted",
    ".onnx": "an ONNX graph, which has no configuration: give the folder from which it was exported",
    ".h5": f"a weight file of TensorFlow or Keras: {SAVE}",
    ".keras": f"a weight file of Keras: {SAVE}",
    ".msgpack": f"a weight file of Flax: {SAVE}",
} | dict.fromkeys(
    (".pt", ".pth", ".bin", ".ckpt"),
    f"a pickle of PyTorch, which can run any code when it is read: {SAVE}",
)


def what_file(path: Path) -> str | None:
    """Return the sentence about a file of another program, or None for a file that npformer may read."""
    said = FILES.get(path.suffix.lower())
    return None if said is None else f"{path} is {said}"


def what_folder(folder: Path) -> str | None:
    """Return the sentence about a folder without the model that npformer looks for in it, or None."""
    if (folder / "adapter_config.json").is_file():
        return (
            f"{folder} has an adapter of PEFT{_base(folder)}, and not the model itself: merge them with "
            "merge_and_unload() of PEFT, save the result with save_pretrained, and give that folder"
        )
    snapshots = folder if folder.name == "snapshots" else folder / "snapshots"
    if snapshots.is_dir():
        inside = sorted(path for path in snapshots.iterdir() if path.is_dir())
        which = f"give {inside[0]}" if len(inside) == 1 else "give a folder below snapshots"
        return f"{folder} is a cache of Hugging Face, which has the model in a folder of its own: {which}"
    for path in sorted(folder.iterdir()):
        said = what_file(path) if path.is_file() else None
        if said is not None:
            return said
    return None


def _base(folder: Path) -> str:
    """Return " for NAME" with the name of the model that an adapter belongs to, or "" if it is not said."""
    try:
        name = read_json(folder / "adapter_config.json", "", "")["base_model_name_or_path"]
    except (UserError, LookupError, TypeError):  # there is no such file or entry
        return ""
    return f" for {name[:80]!r}" if isinstance(name, str) and name else ""
