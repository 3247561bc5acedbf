"""Codecs, which convert a sentence to token ids and back, by words or by subwords, and codecs in checkpoints.

`data/text_codecs.py` has the codecs of a long text, which keep every line break.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from npformer.data.subwords import SubwordCodec
from npformer.data.text_codecs import LongTextCodec, text_codec_from_json
from npformer.data.tokens import LANGUAGES, Language, detokenize, tokenize
from npformer.data.vocabulary import END, MASK, PAD, START, SentenceCodec, Vocabulary, read_codec
from npformer.errors import UserError, in_context
from npformer.storage.checkpoint import Checkpoint


@dataclass(frozen=True)
class TextCodec(SentenceCodec):
    """A codec of whole words: a vocabulary, and the language whose rules split a text into words."""

    kind: ClassVar[str] = "npformer text codec"
    types: ClassVar[dict[str, Any]] = SentenceCodec.types | {"words": list[str]}

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

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence of the ids up to the first END.

        Raises:
            UserError: If an id is outside the vocabulary.
        """
        return detokenize(self.vocabulary.decode(ids))

    def entries(self) -> dict[str, Any]:
        """Return the entries of the JSON text."""
        return super().entries() | {"words": self.vocabulary.words}

    @classmethod
    def from_entries(cls, content: dict[str, Any]) -> Self:
        """Return the codec of these entries."""
        language = Language(content["language"], content["elision"])
        return cls(Vocabulary(tuple(content["words"])), language, content["lowercase"])


Codec = TextCodec | SubwordCodec


def codec_from_json(text: str) -> Codec:
    """Return the codec whose to_json wrote the text.

    Raises:
        UserError: If the text is not one that a codec wrote.
    """
    codec: Codec = read_codec(text, TextCodec, SubwordCodec)
    return codec


AnyCodec = Codec | LongTextCodec

# the functions that read the codecs of a checkpoint, by their roles
ROLES: dict[str, Callable[[str], AnyCodec]] = {
    "source": codec_from_json,
    "target": codec_from_json,
    "text": text_codec_from_json,
    "sentences": TextCodec.from_json,
}


class CodecPair(NamedTuple):
    """The codecs of a translator, from text to token ids and back."""

    source: Codec
    target: Codec


def read_codecs(checkpoint: Checkpoint) -> dict[str, AnyCodec]:
    """Return the codecs in a checkpoint by their roles, see `ROLES`.

    Raises:
        UserError: If the checkpoint holds other texts than a codec wrote.
    """
    codecs = {}
    for role, text in checkpoint.codecs.items():
        with in_context(f"{checkpoint.place}, {role} side"):
            codecs[role] = ROLES[role](text)
    return codecs


def codecs_from_checkpoint(checkpoint: Checkpoint) -> CodecPair:
    """Return the codecs in the checkpoint of a translator.

    Raises:
        UserError: If it is not the checkpoint of a translator, or holds other texts than a codec wrote.
    """
    role = next(iter(checkpoint.codecs))
    if role not in CodecPair._fields:
        raise UserError(
            f"{checkpoint.place} holds {MODELS[role].noun}, which cannot translate: give one of a translator"
        )
    codecs: Any = read_codecs(checkpoint)
    return CodecPair(**codecs)


class ModelOfCodecs(NamedTuple):
    """A kind of model, in the words of messages, and what it reads."""

    noun: str
    reads: str


_TRANSLATOR = ModelOfCodecs("a translator", "sentence pairs")
# the kind of model that has codecs of these roles
MODELS = {
    "source": _TRANSLATOR,
    "target": _TRANSLATOR,
    "text": ModelOfCodecs("a language model", "text"),
    "sentences": ModelOfCodecs("a masked language model", "sentences"),
}


def require_fit(config: Any, codecs: Mapping[str, AnyCodec]) -> None:
    """Check that a model reads and writes the tokens of its codecs.

    Args:
        config: The configuration of the model.
        codecs: The codecs by their roles, see `ROLES`.

    Raises:
        UserError: If the model is of another kind, if it has another number of tokens, or if it has special
            tokens at other ids.
    """
    for role, codec in codecs.items():
        kind = MODELS[role]
        if config.reads != kind.reads:
            raise UserError(
                f"the model reads {config.reads}, and {kind.noun} reads {kind.reads}: give another model"
            )
        size = config.source_vocab if role == "source" else config.target_vocab
        if len(codec.tokens) != size:
            raise UserError(
                f"the {role} vocabulary has {len(codec.tokens)} entries and the model {size}: "
                "use the vocabulary that the model was trained with"
            )
    if "source" in codecs and (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
        raise UserError(
            f"the model's pad, start and end ids are {config.pad_id}, {config.start_id} and {config.end_id}, "
            f"and a vocabulary's {PAD}, {START} and {END}: train a model with these"
        )
    if "sentences" in codecs:
        _require_mask(config, codecs["sentences"])


def _require_mask(config: Any, codec: AnyCodec) -> None:
    """Raise UserError unless a masked language model and its codec agree about padding and the mask."""
    if config.pad_id != PAD:
        raise UserError(
            f"the model's pad id is {config.pad_id}, and a vocabulary's {PAD}: give another model"
        )
    if codec.tokens[-1] != MASK:
        raise UserError(
            f"the last word of the vocabulary is {codec.tokens[-1]!r} and not {MASK}: use the codec that "
            "the model was trained with"
        )
