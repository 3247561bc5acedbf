"""Detokenization: convert decoded text to the form that people write, or to that of tokenised corpora."""

import html
from collections.abc import Sequence

from npformer.data.codecs import Codec
from npformer.data.moses import tokenised
from npformer.data.subwords import WORD_BEGIN, SubwordCodec


def detokenize(codec: Codec, text: str) -> str:
    """Convert a text that a codec decoded to the form that people write.

    The text of a codec of whole words has that form already.
    """
    return codec.detokenize(text) if isinstance(codec, SubwordCodec) else text


def labels(codec: Codec, words: Sequence[str]) -> list[str]:
    """Return the labels of a codec's tokens for a figure.

    A subword that does not begin a word has a dot before it: "photo ·graph".
    """
    return [_label(word, codec) for word in words] if isinstance(codec, SubwordCodec) else list(words)


def _label(piece: str, codec: SubwordCodec) -> str:
    text = html.unescape(piece) if codec.text == "tokenised" else piece
    if not text.startswith(WORD_BEGIN):
        return f"·{text}"
    return text.removeprefix(WORD_BEGIN) or WORD_BEGIN


def in_form(codec: Codec, text: str, setting: str) -> str:
    """Convert a text that a codec decoded to the form in which BLEU compares it.

    Args:
        codec: The codec.
        text: The text that it decoded.
        setting: "raw" for text as people write it, or "tokenised" for lowercase text with a space before each
            punctuation mark.
    """
    if setting == "raw":
        return detokenize(codec, text)
    if isinstance(codec, SubwordCodec) and codec.text == "tokenised":
        return text
    return tokenised(text, codec.language.name)
