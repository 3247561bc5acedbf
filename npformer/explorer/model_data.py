"""The data of a live page: all that a browser needs to compute a model, forward and backward.

The model is a translator of whole words, or a GPT of characters, which reads one text and predicts each next
character.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.data.codecs import Codec, TextCodec
from npformer.data.text_codecs import ByteCodec, CharacterCodec
from npformer.errors import UserError, quantity
from npformer.escaping import printable
from npformer.explorer.code_lines import code_of_steps
from npformer.generation.codec_tokenizers import LongTextTokenizer
from npformer.language import say
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.registry import kind_of
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.nn.positions import FixedPositions
from npformer.pretrained import Translator
from npformer.pretrained.attention import forward_pass
from npformer.pretrained.loaded import Loaded, TextGenerator
from npformer.version import __version__

LARGEST_LIVE = 2_000_000  # parameters: a page of 12 MB, which a browser still computes while one waits
MOST_TOKENS = 48  # of a sentence on a page, its end included
MOST_CONTINUED = 16  # tokens by which the model of a page continues a text

# the numbers of the projections of attention in its cache, by the names of its layers
_PROJECTIONS = {"query": 0, "key": 1, "value": 2, "key_value": 1, "query_key_value": 0}

# the signs by which a page shows the characters that one does not see, unless the vocabulary has these signs
_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}


class PageData(NamedTuple):
    """The data of a page: values for JSON, and the arrays whose numbers follow one after the other."""

    head: dict[str, Any]
    arrays: list[Array]


def why_not_live(loaded: Loaded) -> str | None:
    """Return the reason why a page of this model must be a recorded one, or None if it can be live."""
    is_translator = isinstance(loaded, Translator) and isinstance(loaded.model, Transformer)
    is_gpt = isinstance(loaded, TextGenerator) and isinstance(loaded.model, GPT)
    if kind_of(loaded.model.config) not in ("transformer", "gpt") or not (is_translator or is_gpt):
        return say(
            "a live page computes an encoder-decoder Transformer or a GPT, and this is a {noun}",
            noun=_noun(loaded),
        )
    n_parameters = loaded.model.count_parameters()
    if n_parameters > LARGEST_LIVE:
        return say(
            "the model has {count} parameters, and a live page at most {most}",
            count=f"{n_parameters:,}",
            most=f"{LARGEST_LIVE:,}",
        )
    if getattr(loaded.model.config, "decoder_layers", None) is not None:
        return say("a live page computes as many layers of the decoder as of the encoder")
    if is_translator and getattr(loaded.model.config, "positions", None) == "rotary":
        return say("a live page computes rotary positions in a GPT only, and this is a translator")
    codecs = _codecs_of(loaded)
    if not all(isinstance(codec, (TextCodec, CharacterCodec)) for codec in codecs):
        tokens = say("bytes") if isinstance(codecs[0], ByteCodec) else say("subwords")
        return say(
            "a live page reads whole words or characters, and the tokens of this model are {tokens}",
            tokens=tokens,
        )
    return None


def _codecs_of(loaded: Loaded) -> list[Any]:
    """Return the codecs of the texts that a model reads and writes, with None for a tokenizer without one."""
    if isinstance(loaded, Translator):
        return list(loaded.codec) if loaded.has_codecs else [None]
    return [getattr(loaded.tokenizer, "codec", None)]


def _noun(loaded: Loaded) -> str:
    """Return the class of a model in words, such as "universal transformer" or "GPT"."""
    name = type(loaded.model).__name__
    return name if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def live_data(loaded: Translator, source: str, target: str | None = None) -> PageData:
    """Return the data of a live page.

    Args:
        loaded: A translator for which `why_not_live` returns None.
        source: The sentence with which the page begins.
        target: Its translation. By default, the model translates with greedy search, as the page does.

    Raises:
        UserError: If a sentence is empty or too long, or if a word of the translation is unknown.
    """
    codecs = loaded.codec
    words = {
        "source_words": list(codecs.source.tokens),
        "target_words": list(codecs.target.tokens),
        "tokenization": {
            "source": _tokenization(codecs.source),
            "target": _tokenization(codecs.target),
        },
        "example": _example(loaded, source, target),
    }
    return model_page(loaded, source, words)


def model_page(loaded: Loaded, text: str, words: dict[str, Any]) -> PageData:
    """Return the data of a live page of any model.

    Args:
        loaded: The model.
        text: The text with which the page begins.
        words: The entries about the vocabularies and the example.
    """
    model: Any = loaded.model
    config, tables = model.config, fixed_table(model)
    parameters = {explorer_name(name): to_numpy(p.value) for name, p in model.named_parameters()}
    head = {
        "kind": "live",
        "title": title_of(text),
        "npformer": __version__,
        "model": {"name": Path(loaded.name).name, "parameters": model.count_parameters()},
        "architecture": kind_of(config),
        "config": config_data(config),
        "parameters": [[name, list(value.shape)] for name, value in parameters.items()],
        "positions": list(tables[0].shape) if tables else None,
        "lines": code_of_steps(*variants_of(config)),
    }
    return PageData(head | words, [*parameters.values(), *tables])


def title_of(text: str) -> str:
    """Return the title of a page about a text."""
    return f"{printable(text if len(text) <= 60 else f'{text[:59]}…')} · npformer explorer"


def explorer_name(name: str) -> str:
    """Return the name of a parameter on a page, in which it follows the cache tree.

    So "encoder.layers.0.self_attention.query.weight" is "encoder.0.self_attention.projections.0.weight".
    """
    parts = name.replace(".layers.", ".").split(".")
    for index, part in enumerate(parts[1:-1], 1):
        if part in _PROJECTIONS and parts[index - 1] != "feed_forward":  # which may have a map named value
            parts[index] = f"projections.{_PROJECTIONS[part]}"
    return ".".join(parts)


def config_data(config: TransformerConfig | GPTConfig) -> dict[str, Any]:
    """Return the settings of a model as JSON values, with numbers in place of None.

    JSON has no infinity, and JavaScript's Number() reads its name.
    """
    if isinstance(config, GPTConfig):
        return config.to_dict() | {"d_head": config.d_head, "n_kv_heads": config.key_heads}
    resolved = {
        "d_head": config.head_key,
        "d_value": config.head_value,
        "embedding_dropout": config.input_dropout,
        "mask_fill": "-Infinity" if math.isinf(config.mask_fill) else config.mask_fill,
    }
    return config.to_dict() | resolved


def variants_of(config: TransformerConfig | GPTConfig) -> list[str]:
    """Return the names in `step_lines.VARIANTS` of the settings of a model that change source lines."""
    if isinstance(config, GPTConfig):
        return [] if config.tied else ["untied"]
    chosen = {
        "post-norm": config.norm == "post",
        "sequence": "-" in config.norm,
        "untied": config.tied == "none",
        "filled-mask": math.isfinite(config.mask_fill) and config.masking_how == "replace",
        "added-mask": config.masking_how == "add",
    }
    return [name for name, holds in chosen.items() if holds]


def fixed_table(model: Transformer | GPT) -> list[Array]:
    """Return a list with the table of positions that are not learned, or an empty list if the model has none.

    It is the table of sinusoids, (max_length, D), or that of rotary positions, with K / 2 cosines and K / 2
    sines for each position that a page needs.
    """
    if isinstance(model, GPT):
        rotary = model.layers[0].self_attention.rotary
        if rotary is None:
            return []
        longest = MOST_TOKENS + MOST_CONTINUED  # of a text and its continuation on a page
        return [np.concatenate([to_numpy(table)[:longest] for table in (rotary.cos, rotary.sin)], -1)]
    positions = model.source.positions
    return [to_numpy(positions.table)] if isinstance(positions, FixedPositions) else []


def _tokenization(codec: Codec) -> dict[str, bool]:
    """Return the rules by which a codec of whole words splits a text."""
    assert isinstance(codec, TextCodec)
    return {"lowercase": codec.lowercase, "elision": codec.language.elision}


def _example(loaded: Translator, source: str, target: str | None) -> dict[str, Any]:
    """Return the texts and the ids of a sentence and its translation, each with its end symbol.

    Raises:
        UserError: If a sentence is empty or too long.
    """
    require_words(loaded.codec.source, source, "sentence")
    if target is not None:
        codec = loaded.codec.target
        require_words(codec, target, "translation")
        unknown = codec.vocabulary.unknown(codec.words(target))
        if unknown:
            words = ", ".join(map(repr, unknown))
            raise UserError(f"the model does not know {words} of the translation: use other words")
    # an untrained model may never predict the end symbol
    longest = 2 * len(loaded.source_ids(source)) + 5
    longest = min(longest, loaded.model.config.max_length - 1, MOST_TOKENS - 1)
    run = forward_pass(loaded, source, target, max_length=longest)  # greedy search, as on the page
    source_ids, target_ids = run.source_ids[0].tolist(), run.predicted_ids[0].tolist()
    text = loaded.target_tokenizer.decode(target_ids) if target is None else target
    return {"source": source, "target": text, "source_ids": source_ids, "target_ids": target_ids}


def require_words(codec: Codec, text: str, side: str) -> None:
    """Check that a text has words, and that a page has room for them. An unknown word is read as <UNK>.

    Args:
        codec: The codec of the side.
        text: The text.
        side: The noun for the text in messages, such as "sentence".

    Raises:
        UserError: If it does not.
    """
    words = codec.words(text)
    if not words:
        raise UserError(f"the {side} {text!r} is empty: write at least one word")
    require_room(len(words) + 1, side)


def require_room(n_tokens: int, side: str) -> None:
    """Check that a page has room for a number of tokens.

    Raises:
        UserError: If it does not.
    """
    if n_tokens > MOST_TOKENS:
        raise UserError(
            f"the {side} has {quantity(n_tokens, 'token')}, its end included, and a page has room for "
            f"{MOST_TOKENS}: give a shorter one"
        )


# The text of a GPT


def live_text_data(loaded: TextGenerator, text: str) -> PageData:
    """Return the data of a live page of a GPT of characters.

    Args:
        loaded: A language model for which `why_not_live` returns None.
        text: The text with which the page begins.

    Raises:
        UserError: If the text is too short or too long, or if the model does not know a character.
    """
    tokenizer = loaded.tokenizer
    assert isinstance(tokenizer, LongTextTokenizer)
    assert isinstance(tokenizer.codec, CharacterCodec)
    characters = tokenizer.codec.tokens
    words: dict[str, Any] = {
        "characters": list(characters),
        "target_words": labels_of(characters),
        "continued": MOST_CONTINUED,
        "example": {"source": text, "target": None, "text_ids": _ids_of(loaded, tokenizer.codec, text)},
    }
    return model_page(loaded, text, words)


def labels_of(characters: Sequence[str]) -> list[str]:
    """Return the characters as a page shows them: a space, a line end and a tab by a sign."""
    taken = set(characters)
    return [_SIGNS[c] if c in _SIGNS and _SIGNS[c] not in taken else c for c in characters]


def _ids_of(loaded: TextGenerator, codec: CharacterCodec, text: str) -> list[int]:
    """Return the ids of a text.

    Raises:
        UserError: If it has fewer than two characters, more than a page has room for, or an unknown one.
    """
    if len(text) < 2:
        raise UserError(
            f"the text {text!r} has {quantity(len(text), 'character')}: give at least two, since each is "
            "predicted from those before it"
        )
    room = min(MOST_TOKENS, loaded.model.config.context)
    if len(text) > room:
        raise UserError(
            f"the text has {quantity(len(text), 'character')}, and a page of this model has room for {room}: "
            "give a shorter one"
        )
    return codec.encode(text)
