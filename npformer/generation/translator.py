"""Translator: a trained model and its codecs, which translates sentences into sentences."""

from collections.abc import Sequence
from typing import Any

from npformer.data import END, PAD, START
from npformer.data.codecs import Codec, codec_from_json, require_fit
from npformer.errors import UserError
from npformer.generation.batch_decode import translate_ids
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import Checkpoint


class Translator:
    """A model with the codecs that it was trained with.

    Args:
        model: An encoder-decoder model.
        source_codec: The codec of the language that it reads.
        target_codec: The codec of the language that it writes.

    Raises:
        UserError: If a vocabulary and the model do not match.
    """

    def __init__(self, model: Any, source_codec: Codec, target_codec: Codec) -> None:
        config = model.config
        sides = (("source", source_codec, config.source_vocab), ("target", target_codec, config.target_vocab))
        for side, codec, vocab_size in sides:
            require_fit(codec, vocab_size, side)
        if (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
            raise UserError(
                f"the model's pad, start and end ids are {config.pad_id}, {config.start_id} and "
                f"{config.end_id}, and a vocabulary's {PAD}, {START} and {END}: train a model with these"
            )
        self.model, self.source_codec, self.target_codec = model, source_codec, target_codec

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, backend: str = "numpy") -> "Translator":
        """Return the translator that a checkpoint holds, in the memory of "numpy" or "cupy".

        Raises:
            UserError: If the vocabularies do not fit the model.
        """
        source, target = map(codec_from_json, (checkpoint.source_codec, checkpoint.target_codec))
        return cls(model_from_checkpoint(checkpoint, backend), source, target)

    def translate(self, texts: Sequence[str], *, first_line: int = 1, **settings: Any) -> list[str]:
        """Translate sentences and return the translations in the same order.

        Args:
            texts: The sentences.
            first_line: The line number of the first sentence in error messages, for texts that are read in
                pieces.
            **settings: Those of translate_ids: beam (1 is greedy search), length_penalty, max_length,
                threads and so on.

        Raises:
            UserError: If a sentence is empty or too long for the model, with its line number, or if a setting
                is out of range; before any sentence is translated.
        """
        sources = self._read(texts, first_line)
        for line, ids in enumerate(sources, first_line):
            if len(ids) == 1:
                raise UserError(f"line {line} is empty: write at least one word")
        return self._translated(sources, settings)

    def translate_all(self, texts: Sequence[str], *, first_line: int = 1, **settings: Any) -> list[str]:
        """Translate the lines of a file as `translate` does, but translate an empty line to an empty line."""
        return self._translated(self._read(texts, first_line), settings)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words that are not in the vocabulary and are read as <UNK>, each once, in order."""
        return self.source_codec.vocabulary.unknown(self.source_codec.words(text))

    def _translated(self, sources: list[list[int]], settings: dict[str, Any]) -> list[str]:
        return [self.target_codec.decode(ids) for ids in translate_ids(self.model, sources, **settings)]

    def _read(self, texts: Sequence[str], first_line: int) -> list[list[int]]:
        """Return the ids of each sentence and its end symbol.

        Raises:
            UserError: If a sentence is too long for the model, with its line number.
        """
        if isinstance(texts, str):
            raise UserError("translate takes a list of sentences: put a single sentence into a list")
        limit = self.model.config.max_length
        sources = [[*self.source_codec.encode(text), END] for text in texts]
        for line, ids in enumerate(sources, first_line):
            if len(ids) > limit:
                raise UserError(
                    f"line {line} has {len(ids)} tokens, its end included, and the model's limit is {limit}: "
                    "split the sentence, or train a model with a larger max_length"
                )
        return sources
