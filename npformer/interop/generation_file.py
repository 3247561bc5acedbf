"""The settings with which transformers would translate, read from generation_config.json for our search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.interop.settings_file import FILE, Settings, read_settings
from npformer.models.bart import BartConfig
from npformer.models.transformer import TransformerConfig
from npformer.validation import short

GENERATION_FILE = "generation_config.json"

# what our search does not do: the only values that are supported, which are the defaults of transformers
NUMBERS = {
    "repetition_penalty": 1,
    "num_beam_groups": 1,
    "diversity_penalty": 0,
    "encoder_repetition_penalty": 1,
    "encoder_no_repeat_ngram_size": 0,
    "guidance_scale": 1,
    "penalty_alpha": 0,
}
FLAGS = {"do_sample": False}

# settings that change what is found, whatever their value
OTHERS = (
    "begin_suppress_tokens",
    "constraints",
    "dola_layers",
    "exponential_decay_length_penalty",
    "force_words_ids",
    "forced_decoder_ids",
    "max_time",
    "prompt_lookup_num_tokens",
    "sequence_bias",
    "stop_strings",
    "suppress_tokens",
    "watermarking_config",
)

DEFAULT_LENGTH = 20  # the tokens that transformers generates, the start symbol not counted


def generation_settings(folder: str | os.PathLike[str]) -> Settings:
    """Read generation_config.json of a folder, or its config.json if it has no such file.

    Raises:
        UserError: If the file cannot be read.
    """
    folder = Path(folder)
    return read_settings(folder, GENERATION_FILE if (folder / GENERATION_FILE).exists() else FILE)


def forced_bos(settings: Settings) -> int | None:
    """Return the id of the first token of every translation, or None if the model chooses it."""
    name = "forced_bos_token_id"
    return settings.index(name) if settings.has(name) else None


def end_ids(folder: str | os.PathLike[str]) -> frozenset[int]:
    """Return the ids of the tokens with which a language model ends a text.

    Args:
        folder: The folder of the model.

    Raises:
        UserError: If a file cannot be read, or if its eos_token_id is neither an id nor a list of ids.
    """
    settings = generation_settings(folder)
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
    settings = generation_settings(folder)
    is_older = not (Path(folder) / GENERATION_FILE).exists()  # then BART and mBART have a default
    forces_end = type(config) is TransformerConfig or (is_older and isinstance(config, BartConfig))
    if not is_older:  # an older config.json of mBART may lack the start symbol
        for name, own in (("decoder_start_token_id", config.start_id), ("eos_token_id", config.end_id)):
            if settings.values.get(name) != [own]:
                settings.require(name, own, default=own)
    return search_settings_of(settings, config, forces_end=forces_end)


def search_settings_of(
    settings: Settings, config: TransformerConfig, *, forces_end: bool = True
) -> dict[str, Any]:
    """Return the keywords of translate_ids for the settings of a generation_config.json.

    `max_length` and `min_length` of transformers count the start symbol and the end symbol. `max_new_tokens`
    and `min_new_tokens` count only the end symbol, and take precedence. Padding is taken to be forbidden in a
    Marian (`bad_words_ids`), as in all its models, and no token in the other families.

    Args:
        settings: The settings.
        config: Our configuration of the model.
        forces_end: True if the end symbol is forced after the last token where the settings do not say so
            (`forced_eos_token_id`).

    Raises:
        UserError: If the settings ask for a search that npformer does not have.
    """
    for name, value in NUMBERS.items():
        if settings.number(name, value) != value:
            _refuse(settings, name, value)
    for name, flag in FLAGS.items():
        settings.require(name, flag, default=flag)
    for name in OTHERS:
        if settings.has(name) and settings.values[name] != []:
            raise UserError(
                f"{name} is {short(settings.values[name])} in {settings.place}, and npformer has no such "
                "search: remove the setting, or use another model"
            )
    is_marian = type(config) is TransformerConfig
    if settings.has("bad_words_ids") or is_marian:
        settings.require("bad_words_ids", [[config.pad_id]], default=[[config.pad_id]])
    forces_end = forces_end or settings.has("forced_eos_token_id")
    if forces_end:
        settings.require("forced_eos_token_id", config.end_id, default=config.end_id)
    longest, shortest = _lengths(settings)
    return {
        "beam": settings.count("num_beams", 1),
        "length_penalty": settings.number("length_penalty", 1.0),
        "max_length": min(longest - 2 if forces_end else longest - 1, config.max_length - 1),
        "min_length": max(0, shortest - 1),
        "forbidden": [config.pad_id] if settings.has("bad_words_ids") or is_marian else [],
        "forced_bos": forced_bos(settings),
        "rules": "transformers" if forces_end else "transformers, unforced end",
        "renormalize": settings.flag("renormalize_logits", False),
        "no_repeat_ngram_size": settings.index("no_repeat_ngram_size", 0),
        "early_stopping": _early_stopping(settings),
    }


def _early_stopping(settings: Settings) -> bool | str:
    """Return when the search ends: True, False or "never"."""
    name = "early_stopping"
    if isinstance(settings.values.get(name), str):
        return settings.choice(name, {"never": "never"})
    return settings.flag(name, False)


def _lengths(settings: Settings) -> tuple[int, int]:
    """Return the largest and the smallest number of tokens, the start and the end symbol included."""
    if settings.has("max_new_tokens") or not settings.has("max_length"):
        name, longest = "max_new_tokens", settings.count("max_new_tokens", DEFAULT_LENGTH) + 1
    else:
        name, longest = "max_length", settings.count("max_length")
    if longest < 3:
        raise UserError(
            f"{name} is {settings.values[name]} in {settings.place}, which leaves no room for a token beside "
            "the start and the end symbol: make it larger"
        )
    if settings.has("min_new_tokens"):
        return longest, settings.index("min_new_tokens") + 1
    return longest, settings.index("min_length", 0)


def _refuse(settings: Settings, name: str, value: int) -> None:
    raise UserError(
        f"{name} is {settings.values[name]} in {settings.place}, and npformer supports only {value}: use "
        "another model"
    )
