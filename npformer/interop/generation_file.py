"""The settings with which transformers would translate, read from generation_config.json for our search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.interop.settings_file import FILE, Settings, read_settings
from npformer.models.transformer import TransformerConfig
from npformer.validation import short

GENERATION_FILE = "generation_config.json"

# what our search does not do: the only values that are supported, which are the defaults of transformers
NUMBERS = {"repetition_penalty": 1, "no_repeat_ngram_size": 0, "num_beam_groups": 1, "diversity_penalty": 0}
FLAGS = {"do_sample": False, "early_stopping": False}

DEFAULT_LENGTH = 20  # the max_length of transformers


def end_ids(folder: str | os.PathLike[str]) -> frozenset[int]:
    """Return the ids of the tokens with which a language model ends a text.

    Args:
        folder: The folder of the model.

    Raises:
        UserError: If a file cannot be read, or if its eos_token_id is neither an id nor a list of ids.
    """
    folder = Path(folder)
    file = GENERATION_FILE if (folder / GENERATION_FILE).exists() else FILE
    settings = read_settings(folder, file)
    found = settings.values.get("eos_token_id")
    ids = found if isinstance(found, list) else [] if found is None else [found]
    if not all(type(index) is int for index in ids):
        raise UserError(
            f"eos_token_id is {short(found)} in {settings.place}: it must be an id or a list of ids"
        )
    return frozenset(ids)


def search_settings(folder: str | os.PathLike[str], config: TransformerConfig) -> dict[str, Any]:
    """Return the keywords of translate_ids with which a model finds the translations of `generate`.

    Older folders have no generation_config.json, and these settings in their config.json.

    Args:
        folder: The folder of the model.
        config: Our configuration of it.

    Raises:
        UserError: If a file cannot be read, or asks for a search that npformer does not have.
    """
    folder = Path(folder)
    file = GENERATION_FILE if (folder / GENERATION_FILE).exists() else FILE
    return search_settings_of(read_settings(folder, file), config)


def search_settings_of(settings: Settings, config: TransformerConfig) -> dict[str, Any]:
    """Return the keywords of translate_ids for the settings of a generation_config.json.

    `max_length` and `min_length` of transformers count the start symbol and the end symbol. The end symbol is
    taken to be forced after the last token (`forced_eos_token_id`), as in all models of Marian, and padding
    is taken to be forbidden (`bad_words_ids`).

    Args:
        settings: The settings.
        config: Our configuration of the model.

    Raises:
        UserError: If the settings ask for a search that npformer does not have.
    """
    for name, value in NUMBERS.items():
        if settings.number(name, value) != value:
            _refuse(settings, name, value)
    for name, flag in FLAGS.items():
        settings.require(name, flag, default=flag)
    settings.require("bad_words_ids", [[config.pad_id]], default=[[config.pad_id]])
    settings.require("forced_eos_token_id", config.end_id, default=config.end_id)
    longest = settings.count("max_length", DEFAULT_LENGTH)
    if longest < 3:
        raise UserError(
            f"max_length is {longest} in {settings.place}, and the start and the end symbol take 2: make it "
            "3 or more"
        )
    return {
        "beam": settings.count("num_beams", 1),
        "length_penalty": settings.number("length_penalty", 1.0),
        "max_length": min(longest - 2, config.max_length - 1),
        "min_length": max(0, settings.index("min_length", 0) - 1),
        "allow_unk": True,
        "rules": "transformers",
        "renormalize": settings.flag("renormalize_logits", False),
    }


def _refuse(settings: Settings, name: str, value: int) -> None:
    raise UserError(
        f"{name} is {settings.values[name]} in {settings.place}, and npformer supports only {value}: use "
        "another model"
    )
