"""The trained models that write texts or fill gaps: Translator, TextGenerator and GapFiller."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.data import END
from npformer.data.codecs import Codec, CodecPair, codecs_from_checkpoint, require_fit
from npformer.data.encoding import Encoding, Tokenizer
from npformer.data.moses import tokenised
from npformer.data.text import TextLoader
from npformer.data.text_codecs import ByteCodec
from npformer.errors import UserError, did_you_mean, in_context, quantity
from npformer.escaping import printable
from npformer.generation import Gap, Hypothesis, TextStream, sample_ids
from npformer.generation.batch_decode import require_settings, search_in_parts
from npformer.generation.codec_tokenizers import LongTextTokenizer, SentenceTokenizer
from npformer.generation.detokenize import in_form
from npformer.generation.fill_in import fill_gaps, mask_of, unknown_words
from npformer.generation.sampling import require_sampling
from npformer.generation.search import BEAM, LENGTH_PENALTY
from npformer.interop.chat_template import chat_text
from npformer.interop.generation_file import end_ids
from npformer.interop.library_tokenizer import LibraryTokenizer
from npformer.interop.sentence_files import Pooling
from npformer.models.bert import Bert
from npformer.models.classifier import CLASSIFIERS
from npformer.models.gpt import GPT
from npformer.models.registry import attention_arrays, model_from_checkpoint
from npformer.pretrained.attention import (
    SentenceAttention,
    attention_of,
    forward_pass,
)
from npformer.pretrained.card import Card
from npformer.pretrained.encoders import TextClassifier, TextEncoder
from npformer.pretrained.input_gradients import ScoredOutput
from npformer.pretrained.inside import Inside, Reading
from npformer.pretrained.saliency import MOST_POINTS, TOLERANCE, Inputs, Saliency, saliency_of
from npformer.pretrained.text_model import Kind, TextModel, as_text, as_texts
from npformer.pretrained.translation import Translation, describe
from npformer.storage.checkpoint import Checkpoint
from npformer.validation import require_choice, require_index, short

if TYPE_CHECKING:
    from npformer.explorer import Page

WINDOWS = 8  # windows of a text that a language model reads at a time


class Translator(Inside):
    """An encoder-decoder model with the tokenizers of its two languages.

    `npformer.load` returns one. `Translator.of_codecs` and `Translator.from_checkpoint` make one of a model
    that was trained here.

    Attributes:
        name: The name, folder or file that it was loaded from.
        model: The model.
        card: The model card of a translator that ships, and None for any other.

    Args:
        name: The name.
        model: The model.
        make_tokenizers: A function that returns the tokenizers of the languages that it reads and writes.
        card: The model card.
        own_search: A function that returns the settings of the search that came with the model.
    """

    kind = Kind("translator", "translate", "npformer translate", "npformer train")

    def __init__(
        self,
        name: str,
        model: Any,
        make_tokenizers: Callable[[], tuple[Tokenizer, Tokenizer]],
        *,
        card: Card | None = None,
        own_search: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        self.name, self.model, self.card = name, model, card
        self._make_tokenizers, self._own_search = make_tokenizers, own_search

    @classmethod
    def of_codecs(
        cls, model: Any, source: Codec, target: Codec, *, name: str = "in memory", card: Card | None = None
    ) -> "Translator":
        """Return the translator of a model and the codecs that it was trained with.

        Args:
            model: An encoder-decoder model.
            source: The codec of the language that it reads.
            target: The codec of the language that it writes.
            name: The name of the translator.
            card: The model card.

        Raises:
            UserError: If the model is of another kind, or if a vocabulary and the model do not match.
        """
        require_fit(model.config, {"source": source, "target": target})
        tokenizers = SentenceTokenizer(source), SentenceTokenizer(target)
        return cls(name, model, lambda: tokenizers, card=card)

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, backend: str = "numpy", *, name: str | None = None
    ) -> "Translator":
        """Return the translator in a checkpoint.

        Args:
            checkpoint: The checkpoint.
            backend: "numpy" or "cupy".
            name: The name of the translator, by default that of the checkpoint.

        Raises:
            UserError: If the checkpoint holds no usable model or codec, or if the vocabularies do not fit the
                model.
        """
        codecs, model = codecs_from_checkpoint(checkpoint), model_from_checkpoint(checkpoint, backend)
        with in_context(checkpoint.place):
            return cls.of_codecs(model, *codecs, name=name or checkpoint.file or "in memory")

    @cached_property
    def _tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The two tokenizers, made at their first use, since arrays of ids need none."""
        return self._make_tokenizers()

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the language that it reads."""
        return self._tokenizers[0]

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the language that it writes."""
        return self._tokenizers[1]

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the language that it reads, as the other models have one."""
        return self.source_tokenizer

    @property
    def has_codecs(self) -> bool:
        """True if it was trained here; a Hugging Face folder has tokenizers of its own."""
        return isinstance(self.source_tokenizer, SentenceTokenizer)

    @property
    def codec(self) -> CodecPair:
        """The pair of codecs, `codec.source` and `codec.target`, of a translator that was trained here.

        Raises:
            UserError: If it comes from a Hugging Face folder.
        """
        source, target = self._tokenizers
        if not (isinstance(source, SentenceTokenizer) and isinstance(target, SentenceTokenizer)):
            raise UserError(
                f"{self.name} is a Hugging Face folder, which has a tokenizer and no codecs: give a "
                "translator that npformer trained"
            )
        return CodecPair(source.codec, target.codec)

    @overload
    def translate(self, text: str, *, n_best: None = None, **settings: Any) -> str: ...

    @overload
    def translate(
        self, text: list[str] | tuple[str, ...], *, n_best: None = None, **settings: Any
    ) -> list[str]: ...

    @overload
    def translate(self, text: str, *, n_best: int, **settings: Any) -> list[Translation]: ...

    @overload
    def translate(
        self, text: list[str] | tuple[str, ...], *, n_best: int, **settings: Any
    ) -> list[list[Translation]]: ...

    def translate(self, text: str | Sequence[str], *, n_best: int | None = None, **settings: Any) -> Any:
        """Translate one sentence or a list of sentences.

            npformer.load("en-de").translate("A man is riding a bicycle.")  # a string
            npformer.load("en-de").translate("A man is riding a bicycle.", n_best=3)  # three Translations

        Args:
            text: A sentence, or a list of sentences. The translation of an empty sentence is empty.
            n_best: Return this number of translations of each sentence, best first, with their scores and
                alignments. It is at most the beam.
            settings: begin, the text with which the translation begins, or a list with one for each sentence;
                form, "raw" for text as people write it, or "tokenised" for lowercase text with a space before
                each punctuation mark, in which BLEU is often computed; and the settings of the search: beam,
                length_penalty, max_length, threads and the others of `search_in_parts`. Their defaults are
                those of `search_settings`.

        Returns:
            The translation, or the list of translations in the same order. With n_best, a list of
            Translations in place of each translation. There are fewer than n_best only if there are no more.

        Raises:
            UserError: If a sentence or a beginning is too long for the model, if a beginning has an unknown
                word, or if a setting is unknown or out of range; before any sentence is translated.
        """
        texts = as_texts(text)
        sources = [self._read(line, number) for number, line in enumerate(texts, 1)]
        translations = list(chain.from_iterable(self._translated(texts, sources, n_best, **settings)))
        return translations[0] if isinstance(text, str) else translations

    def translate_stream(
        self, lines: Sequence[str], *, first_line: int = 1, n_best: int | None = None, **settings: Any
    ) -> Iterator[list[Any]]:
        """Translate lines as `translate` does, and yield the translations as soon as they are known.

        Args:
            lines: The lines. The translation of an empty line is empty.
            first_line: The line number of the first line, for messages.
            n_best: As in `translate`.
            settings: As in `translate`.

        Yields:
            The translations of the next lines, in the order of the lines. With n_best, a list of Translations
            in place of each.

        Raises:
            UserError: If a line is too long for the model, after the translations of the lines before it.
        """
        texts = as_texts(lines)
        sources, refused = [], None
        try:
            for number, line in enumerate(texts, first_line):
                sources.append(self._read(line, number))
        except UserError as error:
            refused = error
        yield from self._translated(texts[: len(sources)], sources, n_best, **settings)
        if refused is not None:
            raise refused

    def _translated(
        self,
        texts: list[str],
        sources: list[list[int]],
        n_best: int | None,
        *,
        begin: str | Sequence[str] | None = None,
        form: str = "raw",
        **search: Any,
    ) -> Iterator[list[Any]]:
        """Yield the translations of the next sentences, given as texts and as ids: texts or Translations."""
        require_choice("form", form, ("raw", "tokenised"))
        require_settings(search, ("n_best", "form"))
        search = self.search_settings() | {"begin": self.beginnings(begin, len(texts))} | search
        done = 0
        for part in search_in_parts(self.model, sources, 1 if n_best is None else n_best, **search):
            if n_best is None:
                yield [self.text_of(found[0].ids if found else [], form) for found in part]
            else:
                encodings = [self.source_tokenizer.encode(text) for text in texts[done : done + len(part)]]
                yield self._described(encodings, part, form)
            done += len(part)

    def _described(
        self, sources: list[Encoding], found: list[list[Hypothesis]], form: str = "raw"
    ) -> list[list[Translation]]:
        """Return the hypotheses of each sentence with their texts, scores and alignments."""
        text_of = partial(self.text_of, form=form)
        return describe(self.model, sources, found, self.target_tokenizer.piece, text_of)

    def beginnings(self, begin: str | Sequence[str] | None, count: int) -> list[list[int]]:
        """Return the ids of the text with which the translation of each sentence begins.

        Raises:
            UserError: If there is not one text for each sentence, or if a text has an unknown word.
        """
        texts = [begin or ""] * count if begin is None or isinstance(begin, str) else as_texts(begin)
        if len(texts) != count:
            raise UserError(
                f"begin has {quantity(len(texts), 'text')} for {quantity(count, 'sentence')}: give one text "
                "for all of them, or one for each"
            )
        tokenizer = self.target_tokenizer
        for text in dict.fromkeys(texts):
            if unknown := unknown_words(tokenizer, text):
                raise UserError(
                    f"begin has {', '.join(map(repr, unknown))}, which the model cannot write: begin with "
                    "other words"
                )
        n_before = len(tokenizer.encode("").ids) - 1  # the forced first token, which the search adds
        return [tokenizer.encode(text).ids[n_before:-1] for text in texts]  # without the end symbol

    @overload
    def score(self, source: str, target: str) -> Translation: ...

    @overload
    def score(
        self, source: list[str] | tuple[str, ...], target: list[str] | tuple[str, ...]
    ) -> list[Translation]: ...

    def score(self, source: str | Sequence[str], target: str | Sequence[str]) -> Any:
        """Return the log-probability and the alignment of a translation that is given.

            npformer.load("en-de").score("A man sleeps.", "Ein Mann schläft.").log_prob

        Args:
            source: A sentence, or a list of sentences.
            target: Its translation, or a list of translations. A word that the model does not know counts as
                <UNK>. An empty translation is the end symbol alone.

        Returns:
            A Translation, or the list of Translations in the same order.

        Raises:
            UserError: If there is not one translation for each sentence, or if a sentence is empty, or one of
                them is too long for the model.
        """
        sources, targets = as_texts(source), as_texts(target)
        if isinstance(source, str) != isinstance(target, str) or len(sources) != len(targets):
            raise UserError(
                f"source is {short(source)} and target is {short(target)}: give a text and its translation, "
                "or two lists of the same length"
            )
        read, found = [], []
        for number, (sentence, translation) in enumerate(zip(sources, targets, strict=True), 1):
            if len(self._read(sentence, number)) == 1:
                raise UserError(f"line {number} is empty: write at least one word")
            read.append(self.source_tokenizer.encode(sentence))
            ids = self.target_tokenizer.encode(translation).ids
            self._require_room(ids, f"the translation of line {number}")
            found.append([Hypothesis(ids[:-1], math.nan, math.nan)])  # describe adds the end symbol
        described = self._described(read, found)
        scored = [each._replace(text=text) for (each,), text in zip(described, targets, strict=True)]
        return scored[0] if isinstance(source, str) else scored

    def source_ids(self, text: str) -> list[int]:
        """Return the ids of a sentence and its end symbol."""
        tokenizer = self.source_tokenizer
        if isinstance(tokenizer, SentenceTokenizer):  # without the search for its words in the text
            return [*tokenizer.codec.encode(text), END]
        return tokenizer.encode(text).ids

    def text_of(self, ids: Iterable[int], form: str = "raw") -> str:
        """Return the text of the ids of a translation.

        Args:
            ids: The ids.
            form: "raw" or "tokenised", as for `translate`.
        """
        require_choice("form", form, ("raw", "tokenised"))
        tokenizer = self.target_tokenizer
        text = tokenizer.decode(ids)
        if isinstance(tokenizer, SentenceTokenizer):
            return in_form(tokenizer.codec, text, form)
        return text if form == "raw" else tokenised(text, "plain")

    def logits(self, source_ids: Any, target_in_ids: Any) -> Array:
        """Return the logits of the next token at each position of the decoder.

        Args:
            source_ids: The ids that the encoder reads, of shape (B, S).
            target_in_ids: The ids that the decoder reads, the start symbol first, of shape (B, T).

        Returns:
            The logits, of shape (B, T, V), on the host.

        Raises:
            UserError: If the model cannot read the ids.
        """
        return to_numpy(self.model(source_ids, target_in_ids))

    @overload
    def attention(self, source: str, target_in_ids: None = None, **settings: Any) -> SentenceAttention: ...

    @overload
    def attention(self, source: Any, target_in_ids: Any) -> dict[str, Array]: ...

    def attention(
        self, source: Any, target_in_ids: Any = None, **settings: Any
    ) -> SentenceAttention | dict[str, Array]:
        """Return the attention weights of every layer and head, for a sentence or for arrays of ids.

        Args:
            source: The sentence to translate; or the ids that the encoder reads, of shape (B, S).
            target_in_ids: With ids: those that the decoder reads, the start symbol first, of shape (B, T).
            settings: With a sentence: settings of the search, as in `translate`, without n_best and form.

        Returns:
            For a sentence, the weights with the tokens of queries and keys; `.plot()` draws them. For ids, a
            dict from the kind of attention, "encoder", "decoder" or "cross", to an array of shape
            (L, B, H, queries, keys).

        Raises:
            UserError: If the sentence is empty, or if the model cannot read the sentence or the ids.
        """
        if isinstance(source, str):
            if target_in_ids is not None:
                raise UserError(
                    "target_in_ids belongs to ids: leave it out, or give ids instead of a sentence"
                )
            return attention_of(self, source, **(self.search_settings() | settings))
        if target_in_ids is None:
            raise UserError("the ids have no target_in_ids: give those that the decoder reads as well")
        if settings:
            raise UserError(f"nothing is searched with ids: leave out {', '.join(settings)}")
        _, cache = self.model.forward(source, target_in_ids)
        return attention_arrays(cache)

    def saliency(
        self,
        sentence: str,
        *,
        target: str | None = None,
        position: int | None = None,
        score: str = "log-probability",
        method: str = "integrated",
        tolerance: float = TOLERANCE,
        most_points: int = MOST_POINTS,
        **search: Any,
    ) -> Saliency:
        """Return how much each token that the model reads contributes to the score of an output token.

        The model reads the sentence in its encoder, and in its decoder the translation before the token.

        Args:
            sentence: The sentence to translate.
            target: The output token, one of the tokens of the translation. By default, the first token, or
                the one at the position.
            position: The position of the output token in the translation, from 0. By default, the first one
                at which the target stands.
            score: "log-probability" or "logit".
            method: "integrated" for integrated gradients, or "gradient" for gradient × input.
            tolerance: The largest error of the sum of integrated gradients, in units of the score.
            most_points: The largest number of points of integrated gradients.
            search: Settings of the search, as in `translate`, without n_best and form.

        Raises:
            UserError: If the sentence is empty or too long for the model, if the translation has no such
                token, or if a setting is impossible.
        """
        run = forward_pass(self, as_text(sentence), **(self.search_settings() | search))
        position = _place_of(target, position, run.predicted)
        inputs = {
            "source": Inputs(run.source_ids[0].tolist(), run.source),
            "target": Inputs(run.target_ids[0].tolist(), run.target),
        }
        output = ScoredOutput(position, int(run.predicted_ids[0, position]), score)
        return saliency_of(
            self.model,
            inputs,
            output,
            run.predicted[position],
            method=method,
            tolerance=tolerance,
            most_points=most_points,
        )

    @property
    def _writes(self) -> Tokenizer:
        return self.target_tokenizer

    def _reading(self, text: str, **search: Any) -> Reading:
        run = forward_pass(self, as_text(text), **(self.search_settings() | search))
        ids, tokens = [run.source_ids, run.target_ids], [run.source, run.target]
        return Reading(ids, tokens, run.predicted_ids[0].tolist(), lambda: 0)

    def _usual_place(self, reading: Reading, token: int | None) -> int:
        return reading.predicted.index(token) if token in reading.predicted else reading.usual()

    def _differs(self, own: Reading, other: Reading) -> int:
        pairs = zip(own.predicted, other.predicted, strict=False)
        return next((place for place, (a, b) in enumerate(pairs) if a != b), own.usual())

    def explore(self, sentence: str | Sequence[str], translation: str | None = None) -> "Page":
        """Return a page on which one follows every number of the model, forward and backward.

        `.save(FILE)` writes the page, which opens offline in a browser. A notebook shows it in a frame.

        Args:
            sentence: The sentence to translate, or several, of which the page shows the first one at first.
            translation: The translation of a single sentence. By default, the model translates.

        Raises:
            UserError: If a text is empty or too long for a page, or if the model does not know a word.
        """
        from npformer.explorer import explore  # a method for the user's convenience reaches upward

        return explore(self, sentence, translation)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that are not in the vocabulary and are read as <UNK>, each once."""
        tokenizer = self.source_tokenizer
        if isinstance(tokenizer, SentenceTokenizer):
            return tokenizer.codec.vocabulary.unknown(tokenizer.codec.words(as_text(text)))
        return unknown_words(tokenizer, as_text(text))

    def search_settings(self) -> dict[str, Any]:
        """Return the settings with which it searches if the caller gives none.

        They are the beam and the length penalty of the model card, or else the paper's 4 and 0.6. A Hugging
        Face folder has its own settings, with which `generate` of transformers would translate.

        Raises:
            UserError: If the folder asks for a search that npformer does not have.
        """
        if self._own_search is not None:
            return self._own_search()
        if self.card is None:
            return {"beam": BEAM, "length_penalty": LENGTH_PENALTY}
        return {"beam": self.card.beam, "length_penalty": self.card.length_penalty}

    def _read(self, text: str, line: int) -> list[int]:
        """Return the ids of a sentence and its end symbol, or raise UserError with its line number."""
        ids = self.source_ids(text)
        self._require_room(ids, f"line {line}")
        return ids

    def _require_room(self, ids: list[int], name: str) -> None:
        """Raise UserError if the model cannot hold the ids of a sentence and its end symbol."""
        limit = self.model.config.max_length
        if len(ids) > limit:
            raise UserError(
                f"{name} has {len(ids)} tokens, its end included, and the model's limit is {limit}: "
                "split the sentence, or train a model with a larger max_length"
            )

    def __repr__(self) -> str:
        title = f" ({printable(self.card.title)})" if self.card else ""
        kind, count = type(self.model).__name__, self.model.count_parameters()
        return f"<translator {printable(self.name)}{title}: {kind} with {count:,} parameters>"


class TextGenerator(TextModel):
    """A trained language model with its tokenizer, which continues texts, as `npformer.load` returns it."""

    kind = Kind("language model", "continue a text", "npformer generate", "npformer train --text")
    model: GPT

    folder: Path | None = None  # the Hugging Face folder that it comes from

    @cached_property
    def end_ids(self) -> frozenset[int]:
        """The ids of the tokens with which it ends a text, eos_token_id of a Hugging Face folder.

        Raises:
            UserError: If the file is damaged.
        """
        return frozenset() if self.folder is None else end_ids(self.folder)

    @overload
    def generate(self, text: str, n_tokens: int = 100, **settings: Any) -> str: ...

    @overload
    def generate(
        self, text: list[str] | tuple[str, ...], n_tokens: int = 100, **settings: Any
    ) -> list[str]: ...

    @overload
    def generate(self, *, chat: Sequence[Mapping[str, str]], n_tokens: int = 100, **settings: Any) -> str: ...

    def generate(
        self,
        text: str | Sequence[str] | None = None,
        n_tokens: int = 100,
        *,
        chat: Sequence[Mapping[str, str]] | None = None,
        **settings: Any,
    ) -> str | list[str]:
        """Continue one text or a list of texts, or answer in a conversation.

            model.generate("The animal was", 20)
            model.generate(chat=[{"role": "user", "content": "Why is the sky blue?"}])

        Args:
            text: The beginning of a text, or a list of beginnings.
            n_tokens: The number of tokens after each beginning. There are fewer if the model ends its text,
                or after a stop string.
            chat: The messages of a conversation in place of a text, for a model of a folder with a chat
                template.
            settings: The settings of `stream`. Without any, each token is the most probable one.

        Returns:
            The text, or the list of texts in the same order, with their beginnings. In a conversation, the
            answer alone.

        Raises:
            UserError: As for `stream`, or if the folder has no chat template or it refuses the messages.
        """
        require_sampling(settings, ("n_tokens", "stop", "chat"))
        if chat is not None:
            if text is not None:
                raise UserError("a text and a chat were given: give one of them")
            return "".join(pieces[0] for pieces in self.stream_chat(chat, n_tokens, **settings))
        if text is None:
            raise UserError("there is no text: give one, or the messages of a chat")
        prompts = as_texts(text)
        steps = self.stream(prompts, n_tokens, **settings)
        texts = ["".join(pieces) for pieces in zip(prompts, *steps, strict=True)]
        return texts[0] if isinstance(text, str) else texts

    def stream(
        self, prompts: Sequence[str], n_tokens: int, *, stop: str | Sequence[str] = (), **settings: Any
    ) -> Iterator[list[str]]:
        """Continue each prompt, and return the pieces of text as soon as they are known.

        Args:
            prompts: The beginnings of B texts.
            n_tokens: The number of tokens after each prompt. There are fewer if the model ends its text, or
                after a stop string.
            stop: One or several strings that end a text, and that do not belong to it. A special token, such
                as "<|im_end|>", is one of them or the end of one.
            settings: The settings of sampling, as in `sample_ids`: temperature, top_k, top_p, and seed or
                rng. Without any, each token is the most probable one.

        Returns:
            An iterator of lists with the next piece of each of the B texts, which may be "". It ends when all
            texts have ended.

        Raises:
            UserError: If a prompt is empty, too long for the model, or has characters that it does not know,
                or if a setting is unknown or impossible.
        """
        prompt_ids, tokenizer = [], self.tokenizer
        for number, prompt in enumerate(as_texts(prompts), 1):
            with in_context(f"prompt {number}"):
                prompt_ids.append(tokenizer.encode(prompt).ids)
        return self._stream_ids(prompt_ids, n_tokens, stop, settings)

    def stream_chat(
        self,
        chat: Sequence[Mapping[str, str]],
        n_tokens: int,
        *,
        stop: str | Sequence[str] = (),
        **settings: Any,
    ) -> Iterator[list[str]]:
        """Answer in a conversation, and return the pieces of the answer as soon as they are known.

        Args:
            chat: The messages, each with a "role", such as "user", and its "content".
            n_tokens, stop, settings: As for `stream`.

        Returns:
            An iterator of lists with one piece each.

        Raises:
            UserError: As for `generate`.
        """
        tokenizer = self.tokenizer
        if self.folder is None or not isinstance(tokenizer, LibraryTokenizer):
            raise UserError(f"{self.name} has no chat template: give a text in place of a chat")
        ids = tokenizer.plain_ids(chat_text(self.folder, chat))
        return self._stream_ids([ids], n_tokens, stop, settings)

    def _stream_ids(
        self, prompt_ids: list[list[int]], n_tokens: int, stop: str | Sequence[str], settings: dict[str, Any]
    ) -> Iterator[list[str]]:
        """Continue prompts that are given as ids."""
        require_sampling(settings, ("n_tokens", "stop"))
        ends = [stop] if isinstance(stop, str) else stop
        if not (np.iterable(ends) and all(isinstance(end, str) for end in ends)):
            raise UserError(f"stop is {short(stop)}: give a string, or a list of strings")
        tokenizer = self.tokenizer
        marks = {index: tokenizer.piece(index) for index in tokenizer.special_ids} if ends else {}
        streams = [TextStream(tokenizer, ids, ends, end_ids=self.end_ids, marks=marks) for ids in prompt_ids]
        return _pieces(streams, sample_ids(self.model, prompt_ids, n_tokens, **settings))

    @property
    def reads_any_bytes(self) -> bool:
        """True if the model also reads files that are not text in UTF-8."""
        return isinstance(self.tokenizer, LongTextTokenizer) and isinstance(self.tokenizer.codec, ByteCodec)

    def loss(self, text: str) -> float:
        """Return the mean of -log p(token) over all tokens of a text but the first, in nats.

        The text is read in windows as long as the context, so the first tokens of a window are predicted from
        few tokens.

        Raises:
            UserError: If the text has fewer than two tokens, or characters that the model does not know.
        """
        from npformer.training.evaluation import evaluate  # loading a model imports no training

        ids = np.array(self._encoded(text).ids)  # (N,)
        if len(ids) < 2:
            raise UserError("the text has a single token, and nothing follows it: give a longer text")
        loader = TextLoader(ids, self.model.config.context, batch_size=WINDOWS)
        return evaluate(self.model, loader.consecutive()).loss

    def perplexity(self, text: str) -> float:
        """Return exp(loss): the number of equally probable tokens among which the model chooses.

        Raises:
            UserError: As for `loss`.
        """
        return float(np.exp(self.loss(text)))

    def _usual_position(self, text: str, encoding: Encoding) -> int:
        return len(encoding.ids) - 1


class GapFiller(TextModel):
    """A trained masked language model with its tokenizer, which fills gaps, as `npformer.load` returns it."""

    kind = Kind("masked language model", "fill gaps", "npformer fill", "npformer train --preset bert-small")
    model: Bert

    def fill(self, text: str, *, k: int = 5) -> list[Gap]:
        """Return the k most probable tokens for each gap of a text, with their probabilities.

            npformer.load("runs/bert-small").fill("the [MASK] crosses the river")

        Args:
            text: The text, with the mask token, such as [MASK], in place of each word to be found.
            k: The number of tokens for each gap.

        Raises:
            UserError: If the text is empty, has no gap, has a word that the model does not know or is too
                long for the model, or k is out of range.
        """
        return fill_gaps(self.model, self.tokenizer, as_text(text), k=k)

    def _usual_position(self, text: str, encoding: Encoding) -> int:
        if self.tokenizer.mask_id not in encoding.ids:
            mask = mask_of(self.tokenizer)
            raise UserError(f"{text!r} has no {mask}: write it in place of a word, or give a position")
        return encoding.ids.index(self.tokenizer.mask_id)


Loaded = Translator | TextGenerator | GapFiller | TextEncoder | TextClassifier
AnyLoaded = TypeVar("AnyLoaded", Translator, TextGenerator, GapFiller)


def loaded_text_model(
    name: str,
    model: GPT | Bert,
    make_tokenizer: Callable[[], Tokenizer],
    labels: Sequence[str] = (),
    read_pooling: Callable[[], Pooling | None] | None = None,
) -> TextGenerator | GapFiller | TextEncoder | TextClassifier:
    """Return a GPT or a Bert, wherever it comes from, as `npformer.load` returns it.

    Args:
        name: The name, folder or file that it was loaded from.
        model: The model.
        make_tokenizer: A function that returns its tokenizer.
        labels: The names of the classes of a classifier.
        read_pooling: For an encoder, the function that returns the pooling of its folder.
    """
    if isinstance(model, GPT) and model.config.head:
        return TextGenerator(name, model, make_tokenizer)
    if isinstance(model, GPT) or model.config.head == "none":
        return TextEncoder(name, model, make_tokenizer, read_pooling)
    if model.config.head in CLASSIFIERS:
        return TextClassifier(name, model, make_tokenizer, labels)
    return GapFiller(name, model, make_tokenizer)


def require_kind(loaded: Loaded, wanted: type[AnyLoaded]) -> AnyLoaded:
    """Return a loaded model if it is of the kind that is wanted.

    Args:
        loaded: The model.
        wanted: The class of the kind.

    Raises:
        UserError: If it is of another kind. The message names the kind and the command for it.
    """
    if isinstance(loaded, wanted):
        return loaded
    found, kind = loaded.kind, wanted.kind
    raise UserError(
        f"{loaded.name} is a {found.noun}, which cannot {kind.work}: use it with {found.command}, or give a "
        f"{kind.noun}, as {kind.maker} makes it"
    )


def _place_of(target: str | None, position: int | None, predicted: list[str]) -> int:
    """Return the position of an output token of a translation, by its label, its position or both.

    Raises:
        UserError: If the translation has no such token.
    """
    if position is not None:
        require_index("position", position, len(predicted))
    if target is None:
        return position or 0
    if as_text(target) not in predicted:
        raise UserError(f"{target!r} is not a token of the translation: {did_you_mean(target, predicted)}")
    if position is None:
        return predicted.index(target)
    if predicted[position] != target:
        raise UserError(f"the token at position {position} is {predicted[position]!r}: leave out one of them")
    return position


def _pieces(streams: list[TextStream], tokens: Iterator[Array]) -> Iterator[list[str]]:
    """Yield the pieces of all texts after each step, until all have ended."""
    for step in tokens:  # (B,)
        yield [stream.add(token) for stream, token in zip(streams, step.tolist(), strict=True)]
        if all(stream.is_finished for stream in streams):
            return
    yield [stream.finish() for stream in streams]
