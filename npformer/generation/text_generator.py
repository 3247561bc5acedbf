"""TextGenerator: a language model with its codec, which continues prompts."""

from collections.abc import Iterator, Sequence
from typing import Any

from npformer.backend import Array
from npformer.data.codecs import text_codec_from_checkpoint
from npformer.data.text_codecs import LongTextCodec
from npformer.errors import UserError, in_context
from npformer.generation.sampling import sample_ids
from npformer.generation.text_stream import TextStream
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import Checkpoint


class TextGenerator:
    """A language model with the codec that it was trained with.

    Args:
        model: A GPT.
        codec: The codec of its tokens.

    Raises:
        UserError: If the model is of another kind, or if its vocabulary and the codec's differ in size.
    """

    def __init__(self, model: Any, codec: LongTextCodec) -> None:
        reads = model.config.reads
        if reads != "text":
            raise UserError(f"the model reads {reads}, and a text generator reads text: give another model")
        if len(codec.tokens) != model.config.vocab_size:
            raise UserError(
                f"the codec has {len(codec.tokens)} tokens and the model {model.config.vocab_size}: use the "
                "codec that the model was trained with"
            )
        self.model, self.codec = model, codec

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, backend: str = "numpy") -> "TextGenerator":
        """Return the language model in a checkpoint, with arrays of the backend "numpy" or "cupy".

        Raises:
            UserError: If the checkpoint holds no usable language model or codec.
        """
        codec = text_codec_from_checkpoint(checkpoint)
        model = model_from_checkpoint(checkpoint, backend)
        with in_context(checkpoint.place):
            return cls(model, codec)

    def stream(
        self, prompts: Sequence[str], n_tokens: int, *, stop: Sequence[str] = (), **settings: Any
    ) -> Iterator[list[str]]:
        """Continue each prompt, and return the pieces of text as soon as they are known.

        Args:
            prompts: The beginnings of B texts.
            n_tokens: The number of tokens after each prompt. There are fewer after a stop string.
            stop: Strings that end a text, and that do not belong to it.
            settings: The other settings of sample_ids: temperature, top_k, top_p and rng.

        Returns:
            An iterator of lists with the next piece of each of the B texts, which may be "". It ends when all
            texts have ended.

        Raises:
            UserError: If a prompt is empty, too long for the model, or has characters that it does not know,
                or if a setting is impossible.
        """
        prompt_ids = []
        for number, prompt in enumerate(prompts, 1):
            with in_context(f"prompt {number}"):
                prompt_ids.append(self.codec.encode(prompt))
        return stream_texts(self.model, self.codec, prompt_ids, n_tokens, stop=stop, **settings)

    def generate(self, prompts: Sequence[str], n_tokens: int, **settings: Any) -> list[str]:
        """Return the texts that begin with the prompts.

        Args:
            prompts: The beginnings of the texts.
            n_tokens: The number of tokens after each prompt.
            settings: The other settings of `stream`.

        Raises:
            UserError: As for `stream`.
        """
        steps = self.stream(prompts, n_tokens, **settings)
        return ["".join(pieces) for pieces in zip(prompts, *steps, strict=True)]


def stream_texts(
    model: Any,
    codec: Any,
    prompt_ids: Sequence[Sequence[int]],
    n_tokens: int,
    *,
    stop: Sequence[str] = (),
    **settings: Any,
) -> Iterator[list[str]]:
    """Continue each prompt, and return the pieces of text as soon as they are known.

    Args:
        model: A GPT.
        codec: An object with a method `decode` that returns the text of ids: a codec or a tokenizer.
        prompt_ids: The ids of the beginnings of B texts.
        n_tokens: As for `TextGenerator.stream`.
        stop: As for `TextGenerator.stream`.
        settings: As for `TextGenerator.stream`.

    Returns:
        An iterator of lists with the next piece of each of the B texts, as `TextGenerator.stream` returns it.

    Raises:
        UserError: If a prompt is empty or too long for the model, or if a setting is impossible.
    """
    streams = [TextStream(codec, ids, stop) for ids in prompt_ids]
    return _pieces(streams, sample_ids(model, prompt_ids, n_tokens, **settings))


def _pieces(streams: list[TextStream], tokens: Iterator[Array]) -> Iterator[list[str]]:
    """Yield the pieces of all texts after each step, until all have ended."""
    for step in tokens:  # (B,)
        yield [stream.add(token) for stream, token in zip(streams, step.tolist(), strict=True)]
        if all(stream.is_finished for stream in streams):
            return
    yield [stream.finish() for stream in streams]
