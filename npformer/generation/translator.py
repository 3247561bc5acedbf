"""SentenceTranslator, a model with two tokenizers that translates sentences, and Translator, with codecs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from npformer.data import END, PAD, START
from npformer.data.codecs import Codec, codecs_from_checkpoint, require_fit
from npformer.data.encoding import Tokenizer
from npformer.data.moses import tokenised
from npformer.errors import UserError, in_context
from npformer.generation.batch_decode import translate_ids, translate_in_parts
from npformer.generation.codec_tokenizers import SentenceTokenizer
from npformer.generation.detokenize import in_form
from npformer.generation.fill_in import unknown_words
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import Checkpoint


class SentenceTranslator:
    """An encoder-decoder model with the tokenizers of its two languages.

    Args:
        model: An encoder-decoder model.
        source_tokenizer: The tokenizer of the language that it reads.
        target_tokenizer: The tokenizer of the language that it writes.

    Raises:
        UserError: If the model is of another kind, or if a tokenizer does not end a sentence with the model's
            end symbol.
    """

    def __init__(self, model: Any, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        _require_sentence_pairs(model)
        end_id = model.config.end_id
        for tokenizer in (source_tokenizer, target_tokenizer):
            ids = tokenizer.encode("").ids
            if ids != [end_id]:
                raise UserError(
                    f"the end symbol of the tokenizer has the ids {ids}, and that of the model {[end_id]}: "
                    "use the files of one model"
                )
        self.model, self.source_tokenizer, self.target_tokenizer = model, source_tokenizer, target_tokenizer

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

    def translate_stream(
        self, texts: Sequence[str], *, first_line: int = 1, **settings: Any
    ) -> Iterator[list[str]]:
        """Translate lines as `translate_all` does, and yield the translations as soon as they are known.

        Args:
            texts: The lines.
            first_line: The line number of the first line, for messages.
            **settings: Those of translate_ids.

        Yields:
            The translations of the next lines, in the order of the lines.

        Raises:
            UserError: If a line is too long for the model, after the translations of the lines before it.
        """
        _require_list(texts)
        sources, refused = [], None
        try:
            for line, text in enumerate(texts, first_line):
                sources.append(self._read_line(text, line))
        except UserError as error:
            refused = error
        for part in translate_in_parts(self.model, sources, **settings):
            yield self._decoded(part)
        if refused is not None:
            raise refused

    def source_ids(self, text: str) -> list[int]:
        """Return the ids of a sentence and its end symbol."""
        return self.source_tokenizer.encode(text).ids

    def unknown_words(self, text: str) -> list[str]:
        """Return the words that are not in the vocabulary and are read as <UNK>, each once, in order."""
        return unknown_words(self.source_tokenizer, text)

    def in_form(self, translation: str, setting: str = "raw") -> str:
        """Convert a translation to the form that people write, or to that of tokenised corpora.

        Args:
            translation: The translation, as `translate` returns it.
            setting: "raw" for text as people write it, or "tokenised" for lowercase text with a space before
                each punctuation mark.
        """
        return translation if setting == "raw" else tokenised(translation, "plain")

    def _translated(self, sources: list[list[int]], settings: dict[str, Any]) -> list[str]:
        return self._decoded(translate_ids(self.model, sources, **settings))

    def _decoded(self, translations: Iterable[Sequence[int]]) -> list[str]:
        return [self.target_tokenizer.decode(ids) for ids in translations]

    def _read(self, texts: Sequence[str], first_line: int) -> list[list[int]]:
        """Return the ids of each sentence and its end symbol.

        Raises:
            UserError: If a sentence is too long for the model, with its line number.
        """
        _require_list(texts)
        return [self._read_line(text, line) for line, text in enumerate(texts, first_line)]

    def _read_line(self, text: str, line: int) -> list[int]:
        """Return the ids of one sentence and its end symbol, or raise UserError with its line number."""
        ids, limit = self.source_ids(text), self.model.config.max_length
        if len(ids) > limit:
            raise UserError(
                f"line {line} has {len(ids)} tokens, its end included, and the model's limit is {limit}: "
                "split the sentence, or train a model with a larger max_length"
            )
        return ids


class Translator(SentenceTranslator):
    """A model with the codecs that it was trained with.

    Args:
        model: An encoder-decoder model.
        source_codec: The codec of the language that it reads.
        target_codec: The codec of the language that it writes.

    Raises:
        UserError: If a vocabulary and the model do not match.
    """

    def __init__(self, model: Any, source_codec: Codec, target_codec: Codec) -> None:
        _require_sentence_pairs(model)
        config = model.config
        sides = (("source", source_codec, config.source_vocab), ("target", target_codec, config.target_vocab))
        for side, codec, vocab_size in sides:
            require_fit(codec, vocab_size, side)
        if (config.pad_id, config.start_id, config.end_id) != (PAD, START, END):
            raise UserError(
                f"the model's pad, start and end ids are {config.pad_id}, {config.start_id} and "
                f"{config.end_id}, and a vocabulary's {PAD}, {START} and {END}: train a model with these"
            )
        super().__init__(model, SentenceTokenizer(source_codec), SentenceTokenizer(target_codec))
        self.source_codec, self.target_codec = source_codec, target_codec

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, backend: str = "numpy") -> "Translator":
        """Return the translator in a checkpoint, with arrays of the backend "numpy" or "cupy".

        Raises:
            UserError: If the checkpoint holds no usable model or codec, or if the vocabularies do not fit the
                model.
        """
        codecs, model = codecs_from_checkpoint(checkpoint), model_from_checkpoint(checkpoint, backend)
        with in_context(checkpoint.place):
            return cls(model, codecs.source, codecs.target)

    def source_ids(self, text: str) -> list[int]:
        """Return the ids of a sentence and its end symbol, without the search for its words in the text."""
        return [*self.source_codec.encode(text), END]

    def unknown_words(self, text: str) -> list[str]:
        """Return the words that are not in the vocabulary and are read as <UNK>, each once, in order."""
        return self.source_codec.vocabulary.unknown(self.source_codec.words(text))

    def in_form(self, translation: str, setting: str = "raw") -> str:
        """Convert a translation as SentenceTranslator does, by the rules of the codec."""
        return in_form(self.target_codec, translation, setting)


def _require_sentence_pairs(model: Any) -> None:
    """Raise UserError for a model that is not a translator."""
    if model.config.reads != "sentence pairs":
        raise UserError(
            f"the model reads {model.config.reads}, and a translator reads sentence pairs: give another model"
        )


def _require_list(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise UserError("translate takes a list of sentences: put a single sentence into a list")
