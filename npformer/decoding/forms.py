"""The forms of a translation: as a person writes it, or lowercased and tokenised as corpora are."""

import html
from collections.abc import Sequence

from npformer.data.bpe import WORD_BEGIN
from npformer.data.codecs import Codec
from npformer.data.moses import tokenised
from npformer.data.subwords import SubwordCodec


def written(codec: Codec, text: str) -> str:
    """What a codec decoded, as a person writes it; a codec of whole words decodes to that already."""
    return codec.written(text) if isinstance(codec, SubwordCodec) else text


def labels(codec: Codec, words: Sequence[str]) -> list[str]:
    """The words of a codec in a picture; a dot marks a subword that is not its first: "photo ·graph"."""
    return [_label(word, codec) for word in words] if isinstance(codec, SubwordCodec) else list(words)


def _label(piece: str, codec: SubwordCodec) -> str:
    text = html.unescape(piece) if codec.text == "tokenised" else piece
    if not text.startswith(WORD_BEGIN):
        return f"·{text}"
    return text.removeprefix(WORD_BEGIN) or WORD_BEGIN


def in_form(codec: Codec, text: str, setting: str) -> str:
    """What a codec decoded, in the form of a setting of BLEU: "raw" as a person writes it, or "tokenised"."""
    if setting == "raw":
        return written(codec, text)
    if isinstance(codec, SubwordCodec) and codec.text == "tokenised":
        return text
    return tokenised(text, codec.language.name)
