"""Dataset: sentence pairs as ids, with the codecs that lead there from text and back."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from npformer.data.batches import Example
from npformer.data.codecs import Codec
from npformer.data.filters import Counts
from npformer.data.tokens import Language, tokenize
from npformer.data.vocabulary import TextCodec, Vocabulary
from npformer.errors import UserError

Words = tuple[list[str], list[str]]  # a sentence and its translation, split


@dataclass(frozen=True)
class Dataset:
    """Sentence pairs as ids, and how to get from text to ids and back.

    Errors: UserError where there is nothing to train on.
    """

    train: list[Example]
    valid: list[Example]
    test: list[Example]
    source: Codec
    target: Codec
    description: dict[str, Any] = field(default_factory=dict)
    counts: Counts | None = None  # of the training pairs given, where some of them may be left out

    def __post_init__(self) -> None:
        if not self.train:
            raise UserError("the dataset has no training sentences: give more, or allow longer ones")

    @property
    def dropped(self) -> int:
        """The training pairs left out."""
        return 0 if self.counts is None else self.counts.dropped

    @property
    def sizes(self) -> dict[str, int]:
        """The vocabularies' sizes, as settings of a TransformerConfig."""
        return {
            "source_vocab": len(self.source.vocabulary),
            "target_vocab": len(self.target.vocabulary),
        }

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that differ where training or validation sentences, or words, differ."""
        content = [self.train, self.valid, self.source.to_json(), self.target.to_json()]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def split_words(pair: tuple[str, str], languages: tuple[Language, Language], lowercase: bool = True) -> Words:
    """Both sentences of a pair, split into words."""
    source, target = (
        tokenize(text, lowercase=lowercase, elision=language.elision)
        for text, language in zip(pair, languages, strict=True)
    )
    return source, target


def word_codecs(
    pairs: Sequence[Words],
    languages: tuple[Language, Language],
    shared: bool = False,
    lowercase: bool = True,
    **limits: Any,
) -> tuple[TextCodec, TextCodec]:
    """The codecs of both sides, with a vocabulary each, or one for both."""
    sides: list[Iterable[list[str]]] = [[source for source, _ in pairs], [target for _, target in pairs]]
    if shared:
        sides = [[sentence for pair in pairs for sentence in pair]] * 2
    source, target = (
        TextCodec(Vocabulary.from_sentences(side, **limits), language, lowercase)
        for side, language in zip(sides, languages, strict=True)
    )
    return source, target


def encode_words(pairs: Iterable[Words], codecs: tuple[TextCodec, TextCodec]) -> list[Example]:
    """The pairs' ids."""
    source, target = (codec.vocabulary for codec in codecs)
    return [(source.encode(words), target.encode(translation)) for words, translation in pairs]
