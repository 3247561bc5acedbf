"""Translator: sentences in, sentences out."""

from collections.abc import Sequence
from typing import Any

from npformer.data import END, PAD, START
from npformer.data.codecs import Codec, require_fit
from npformer.decoding.many import translate_ids
from npformer.errors import UserError


class Translator:
    """A model with the codecs that it was trained with.

    Errors: UserError where vocabularies and model do not fit together.
    """

    def __init__(self, model, source_codec: Codec, target_codec: Codec) -> None:
        config = model.config
        sides = (("source", source_codec, config.source_vocab), ("target", target_codec, config.target_vocab))
        for side, codec, n_words in sides:
            require_fit(codec, n_words, side)
        if (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
            raise UserError(
                f"the model's pad, start and end ids are {config.pad_id}, {config.start_id} and "
                f"{config.end_id}, and a vocabulary's {PAD}, {START} and {END}: train one with the latter"
            )
        self.model, self.source_codec, self.target_codec = model, source_codec, target_codec

    def translate(self, texts: Sequence[str], *, first_line: int = 1, **settings: Any) -> list[str]:
        """The translation of each sentence, in the order given; beam=1 is greedy search.

        first_line is the number of the first sentence in error messages, for who reads a text piece by piece.
        The other settings are those of translate_ids: beam, length_penalty, max_length, threads and so on.
        Errors: UserError, before any is translated, for a sentence that is empty or too long for the model,
        with its line; or for settings out of range.
        """
        sources = self._read(texts, first_line)
        for line, ids in enumerate(sources, first_line):
            if len(ids) == 1:
                raise UserError(f"line {line} is empty: write at least one word")
        return self._translated(sources, settings)

    def translate_all(self, texts: Sequence[str], *, first_line: int = 1, **settings: Any) -> list[str]:
        """The same for the lines of a file: an empty line is no mistake, and stays empty."""
        return self._translated(self._read(texts, first_line), settings)

    def unknown_words(self, text: str) -> list[str]:
        """The words that the model has never seen, and reads as <UNK>: each once, in order."""
        return self.source_codec.vocabulary.unknown(self.source_codec.words(text))

    def _translated(self, sources: list[list[int]], settings: dict[str, Any]) -> list[str]:
        return [self.target_codec.decode(ids) for ids in translate_ids(self.model, sources, **settings)]

    def _read(self, texts: Sequence[str], first_line: int) -> list[list[int]]:
        """The ids of each sentence and its end, or a UserError that names its line."""
        if isinstance(texts, str):
            raise UserError("translate takes a list of sentences: put the one sentence into a list")
        limit = self.model.config.max_length
        sources = [[*self.source_codec.encode(text), END] for text in texts]
        for line, ids in enumerate(sources, first_line):
            if len(ids) > limit:
                raise UserError(
                    f"line {line} has {len(ids)} tokens, its end included, and the model's limit is {limit}: "
                    "split the sentence, or train a model with a larger max_length"
                )
        return sources
