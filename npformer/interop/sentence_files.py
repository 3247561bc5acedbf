"""The files of sentence-transformers beside a model: how the vectors of tokens become one vector for a text.

Source: https://sbert.net/docs/package_reference/sentence_transformer/modules.html; Reimers and Gurevych 2019.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from npformer.errors import UserError
from npformer.interop.settings_file import REMEDY, Settings
from npformer.storage.json_files import read_json
from npformer.validation import short

MODULES = "modules.json"
# the poolings that npformer has, by the names of the file
MODES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


class Pooling(NamedTuple):
    """The way in which a folder makes one vector of a text.

    Attributes:
        mode: "mean" for the mean of the vectors of all tokens, or "cls" for that of the first one.
        normalize: Whether the vector is divided by its length.
        longest: The largest number of tokens, or None if only the model limits it.
        prompt: The text before every text.
        lowercase: Whether texts are lowercased.
    """

    mode: str
    normalize: bool = False
    longest: int | None = None
    prompt: str = ""
    lowercase: bool = False


def read_pooling(folder: Path) -> Pooling | None:
    """Read how a folder of sentence-transformers makes one vector of a text; None if it is no such folder.

    Raises:
        UserError: If a file is damaged, or asks for a module or a pooling that npformer does not have.
    """
    if not (folder / MODULES).is_file():
        return None
    place = f"{MODULES} in {folder}"
    modules = read_json(folder / MODULES, place, REMEDY)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise UserError(f"{place} is {short(modules)}, not a list of objects: {REMEDY}")
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise UserError(
            f"{place} asks for {', '.join(kinds)}, and npformer supports a Transformer, a Pooling and a "
            "Normalize: use another model, or its hidden states"
        )
    pooling = _settings(folder, Path(str(modules[1].get("path", ""))) / "config.json")
    more = _settings(folder, Path("config_sentence_transformers.json"))
    own = _settings(folder, Path("sentence_bert_config.json"))
    name = more.values.get("default_prompt_name")
    prompt = more.part("prompts").values.get(str(name), "") if name is not None else ""
    return Pooling(
        _mode(pooling),
        kinds[2:] == ["Normalize"],
        own.count("max_seq_length") if own.has("max_seq_length") else None,
        prompt if isinstance(prompt, str) else "",
        own.flag("do_lower_case", False),
    )


def _settings(folder: Path, file: Path) -> Settings:
    """Return the settings in a file of the folder, which are none if there is no such file."""
    place = f"{file} in {folder}"
    content = read_json(folder / file, place, REMEDY) if (folder / file).is_file() else {}
    if not isinstance(content, dict):
        raise UserError(f"{place} is {short(content)}, not a JSON object: {REMEDY}")
    return Settings(content, place)


def _mode(settings: Settings) -> str:
    """Return the only pooling that the settings ask for, or raise UserError for any other."""
    if settings.has("pooling_mode"):
        return settings.choice("pooling_mode", {mode: mode for mode in MODES.values()})
    asked = [name for name, value in settings.values.items() if name.startswith("pooling_mode_") and value]
    if len(asked) != 1 or asked[0] not in MODES:
        raise UserError(
            f"{settings.place} asks for {', '.join(asked) or 'no pooling'}, and npformer supports one of "
            f"{', '.join(MODES)}: use another model, or its hidden states"
        )
    return MODES[asked[0]]
