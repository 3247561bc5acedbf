"""Codecs, which convert a sentence to token ids and back, by words or by subwords."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from npformer.data.subwords import SUBWORD_CODEC, SubwordCodec
from npformer.data.tokens import LANGUAGES, Language, detokenize, tokenize
from npformer.data.vocabulary import Vocabulary, read_object
from npformer.errors import UserError, in_context
from npformer.storage.checkpoint import Checkpoint
from npformer.storage.json_files import require_entries

TEXT_CODEC = "npformer text codec"


@dataclass(frozen=True)
class TextCodec:
    """A codec of whole words: a vocabulary, and the language whose rules split a text into words."""

    vocabulary: Vocabulary
    language: Language = LANGUAGES["plain"]
    lowercase: bool = True

    @classmethod
    def from_lines(
        cls,
        lines: Iterable[str],
        *,
        language: Language = LANGUAGES["plain"],
        lowercase: bool = True,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> "TextCodec":
        """Return the codec for the words in `lines`.

        Args:
            lines: The sentences.
            language: The language of the text.
            lowercase: Convert the text to lower case.
            min_count: Leave out words that occur less often.
            max_size: The largest size of the vocabulary, special tokens included.

        Raises:
            UserError: If a setting is out of range, or no word is left.
        """
        sentences = (tokenize(line, lowercase=lowercase, elision=language.elision) for line in lines)
        vocabulary = Vocabulary.from_sentences(sentences, min_count=min_count, max_size=max_size)
        return cls(vocabulary, language, lowercase)

    def words(self, text: str) -> list[str]:
        """Return the words of a sentence, known or not."""
        return tokenize(text, lowercase=self.lowercase, elision=self.language.elision)

    def encode(self, text: str, *, strict: bool = False) -> list[int]:
        """Return the ids of a sentence, without START and END. An empty sentence gives [].

        Raises:
            UserError: If the sentence is empty and strict is True (for text that a person typed).
        """
        words = self.words(text)
        if strict and not words:
            raise UserError(f"the sentence {text!r} is empty: write at least one word")
        return self.vocabulary.encode(words)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence of the ids up to the first END.

        Raises:
            UserError: If an id is outside the vocabulary.
        """
        return detokenize(self.vocabulary.decode(ids))

    def to_json(self) -> str:
        """Return the codec as a JSON text, which from_json reads."""
        content = {
            "kind": TEXT_CODEC,
            "language": self.language.name,
            "elision": self.language.elision,
            "lowercase": self.lowercase,
            "words": self.vocabulary.words,
        }
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "TextCodec":
        """Return the codec that to_json wrote.

        Raises:
            UserError: If the text is not one that to_json wrote.
        """
        content = read_object(text, TEXT_CODEC)
        types = {"kind": str, "language": str, "elision": bool, "lowercase": bool, "words": list[str]}
        require_entries(
            content, types, "the text codec", "write it again with to_json", optional={"format": int}
        )
        language = Language(content["language"], content["elision"])
        return cls(Vocabulary(tuple(content["words"])), language, content["lowercase"])


Codec = TextCodec | SubwordCodec


def codec_from_json(text: str) -> Codec:
    """Return the codec whose to_json wrote the text.

    Raises:
        UserError: If the text is not one that a codec wrote.
    """
    kind = read_object(text, TEXT_CODEC, SUBWORD_CODEC)["kind"]
    return SubwordCodec.from_json(text) if kind == SUBWORD_CODEC else TextCodec.from_json(text)


class CodecPair(NamedTuple):
    """The codecs of a translator, from text to token ids and back."""

    source: Codec
    target: Codec


def codecs_from_checkpoint(checkpoint: Checkpoint) -> CodecPair:
    """Return the codecs in a checkpoint.

    Raises:
        UserError: If the checkpoint holds other texts than a codec wrote.
    """
    pair = []
    for side, text in (("source", checkpoint.source_codec), ("target", checkpoint.target_codec)):
        with in_context(f"{checkpoint.place}, {side} side"):
            pair.append(codec_from_json(text))
    return CodecPair(*pair)


def require_fit(codec: Codec, size: int, side: str) -> None:
    """Check that a codec has as many words as the model reads or writes.

    Args:
        codec: The codec of the side.
        size: The size of the model's vocabulary.
        side: "source" or "target", for the message.

    Raises:
        UserError: If the sizes differ.
    """
    if len(codec.vocabulary) != size:
        raise UserError(
            f"the {side} vocabulary has {len(codec.vocabulary)} entries and the model {size}: "
            "use the vocabulary that the model was trained with"
        )
