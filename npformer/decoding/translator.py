"""Translator: sentences in, sentences out."""

from collections.abc import Sequence

from npformer.data import END, PAD, START, TextCodec, pad
from npformer.decoding.beam import beam_search
from npformer.decoding.greedy import greedy
from npformer.errors import UserError


class Translator:
    """A model with the codecs that it was trained with.

    Errors: UserError where vocabularies and model do not fit together.
    """

    def __init__(self, model, source_codec: TextCodec, target_codec: TextCodec) -> None:
        config = model.config
        sides = (("source", source_codec, config.source_vocab), ("target", target_codec, config.target_vocab))
        for side, codec, n_words in sides:
            if len(codec.vocabulary) != n_words:
                raise UserError(
                    f"the {side} vocabulary has {len(codec.vocabulary)} words and the model {n_words}: "
                    "use the vocabulary that the model was trained with"
                )
        if (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
            raise UserError(
                f"the model's pad, start and end ids are {config.pad_id}, {config.start_id} and "
                f"{config.end_id}, and a vocabulary's {PAD}, {START} and {END}: train one with the latter"
            )
        self.model, self.source_codec, self.target_codec = model, source_codec, target_codec

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int = 1,
        length_penalty: float = 0.6,
        max_length: int | None = None,
        cached: bool = True,
        batch_size: int = 64,
        first_line: int = 1,
    ) -> list[str]:
        """The translation of each sentence, in the order given; beam=1 is greedy search.

        Sentences of similar length go through the model together, up to batch_size at a time. first_line is
        the number of the first sentence in error messages, for who reads a text piece by piece.
        Errors: UserError, before any is translated, for a sentence that is empty or too long for the model,
        with its line; or for settings out of range.
        """
        if isinstance(texts, str):
            raise UserError("translate takes a list of sentences: put the one sentence into a list")
        if batch_size < 1:
            raise UserError(f"batch_size is {batch_size}: it must be 1 or more")
        sources = [self._read(text, line) for line, text in enumerate(texts, first_line)]
        order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
        translations = [""] * len(sources)
        for first in range(0, len(order), batch_size):
            chosen = order[first : first + batch_size]
            source = pad([sources[index] for index in chosen])  # (B, S)
            if beam == 1:
                found = greedy(self.model, source, max_length=max_length, cached=cached)
            else:
                hypotheses = beam_search(
                    self.model,
                    source,
                    beam=beam,
                    length_penalty=length_penalty,
                    max_length=max_length,
                    cached=cached,
                )
                found = [best.ids for best, *_ in hypotheses]
            for index, ids in zip(chosen, found, strict=True):
                translations[index] = self.target_codec.decode(ids)
        return translations

    def unknown_words(self, text: str) -> list[str]:
        """The words that the model has never seen, and reads as <UNK>: each once, in order."""
        return self.source_codec.vocabulary.unknown(self.source_codec.words(text))

    def _read(self, text: str, line: int) -> list[int]:
        """The ids of a sentence and its end, or a UserError that names its line."""
        ids = [*self.source_codec.encode(text), END]
        limit = self.model.config.max_length
        if len(ids) == 1:
            raise UserError(f"line {line} is empty: write at least one word")
        if len(ids) > limit:
            raise UserError(
                f"line {line} has {len(ids)} tokens, its end included, and the model's limit is {limit}: "
                "split the sentence, or train a model with a larger max_length"
            )
        return ids
