"""npformer.load, which loads a trained translator by its name, from the folder of a run or from a file."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from npformer.backend import choose_backend
from npformer.data.codecs import CodecPair
from npformer.errors import UserError, did_you_mean
from npformer.generation import Translator
from npformer.generation.detokenize import detokenize
from npformer.generation.search import BEAM, LENGTH_PENALTY
from npformer.models.registry import Model
from npformer.pretrained.attention import SentenceAttention, attention_of
from npformer.pretrained.card import Card
from npformer.pretrained.store import SUFFIX, is_pretrained_file, names, pretrained_path, read_pretrained
from npformer.storage.checkpoint import load_checkpoint
from npformer.storage.text import printable


class LoadedTranslator:
    """A trained translator with its codecs, as `npformer.load` returns it.

    Attributes:
        name: The name, folder or file that it was loaded from.
        model: The model.
        codec: The pair of codecs, `codec.source` and `codec.target`.
        card: The model card of a translator that ships, and None for a run of your own.
        translator: The `npformer.generation.Translator` that does the work.
    """

    def __init__(self, name: str, translator: Translator, card: Card | None = None) -> None:
        self.name, self.translator, self.card = name, translator, card
        self.model: Model = translator.model
        self.codec = CodecPair(translator.source_codec, translator.target_codec)

    @overload
    def translate(self, text: str, **settings: Any) -> str: ...

    @overload
    def translate(self, text: list[str] | tuple[str, ...], **settings: Any) -> list[str]: ...

    def translate(self, text: str | Sequence[str], **settings: Any) -> str | list[str]:
        """Translate one sentence or a list of sentences.

        Args:
            text: A sentence, or a list of sentences. The translation of an empty sentence is empty.
            settings: Settings of the search: beam, length_penalty, max_length, threads. The defaults of beam
                and length_penalty are those of the model card, or 4 and 0.6.

        Returns:
            The translation, or the list of translations in the same order, as a person writes them.

        Raises:
            UserError: If a sentence is too long for the model or a setting is out of range.
        """
        lines = [text] if isinstance(text, str) else list(text)
        decoded = self.translator.translate_all(lines, **(self.search_settings() | settings))
        translations = [detokenize(self.codec.target, each) for each in decoded]
        return translations[0] if isinstance(text, str) else translations

    def translate_stream(
        self, lines: Sequence[str], *, first_line: int = 1, **settings: Any
    ) -> Iterator[list[str]]:
        """Translate lines as `translate` does, and yield the translations as soon as they are known.

        Args:
            lines: The lines. The translation of an empty line is empty.
            first_line: The line number of the first line, for messages.
            settings: Settings of the search, as in `translate`.

        Yields:
            The translations of the next lines, in the order of the lines.

        Raises:
            UserError: If a line is too long for the model, after the translations of the lines before it.
        """
        settings = self.search_settings() | settings
        for part in self.translator.translate_stream(lines, first_line=first_line, **settings):
            yield [detokenize(self.codec.target, each) for each in part]

    def attention(self, sentence: str, **settings: Any) -> SentenceAttention:
        """Translate a sentence and return the attention weights of every layer and head.

        Args:
            sentence: The sentence to translate.
            settings: Settings of the search, as in `translate`.

        Returns:
            The weights as arrays, with the tokens of queries and keys; `.plot()` draws them.

        Raises:
            UserError: If the sentence is empty or too long for the model.
        """
        return attention_of(self.translator, sentence, **(self.search_settings() | settings))

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that are not in the vocabulary and are read as <UNK>, each once."""
        return self.translator.unknown_words(text)

    def search_settings(self) -> dict[str, Any]:
        """Return the beam and the length penalty of the model card, or else the paper's 4 and 0.6."""
        if self.card is None:
            return {"beam": BEAM, "length_penalty": LENGTH_PENALTY}
        return {"beam": self.card.beam, "length_penalty": self.card.length_penalty}

    def __repr__(self) -> str:
        title = f" ({printable(self.card.title)})" if self.card else ""
        kind, count = type(self.model).__name__, self.model.count_parameters()
        return f"<translator {printable(self.name)}{title}: {kind} with {count:,} parameters>"


def load(model: str | os.PathLike[str], *, last: bool = False, backend: str = "numpy") -> LoadedTranslator:
    """Load a trained translator.

    Args:
        model: The name of a translator that ships ("en-de"; `npformer pretrained` lists them), the folder of
            a run, a checkpoint, or a file that `npformer pretrained --export` wrote.
        last: Load the last checkpoint in the folder of a run, not the best one.
        backend: "numpy", "cupy", or "auto" for CuPy where there is a GPU.

    Returns:
        The translator, with `.translate(...)`, `.attention(...)`, `.model` and `.codec`.

    Raises:
        UserError: If there is no such name, folder or file, or if the file is damaged.
    """
    name = os.fspath(model)
    path = find_model(name, last=last)
    backend = choose_backend(backend)
    if is_pretrained_file(path):
        content = read_pretrained(path)
        translator = Translator(content.model.to(backend), content.source, content.target)
        return LoadedTranslator(name, translator, content.card)
    return LoadedTranslator(name, Translator.from_checkpoint(load_checkpoint(path), backend))


def find_model(name: str, *, last: bool = False) -> Path:
    """Return the file of a model, by the name, folder or file that `load` takes.

    Raises:
        UserError: If there is none, or if `last` is given with anything but the folder of a run.
    """
    path = Path(name)
    is_run = name not in names() and path.is_dir()
    if last and not is_run and (name in names() or path.exists()):
        raise UserError(
            f"the last checkpoint was requested, but {name} is not the folder of a run: "
            "leave out --last (last=True), or give the folder of a run"
        )
    if name in names():
        return pretrained_path(name)
    if is_run:
        return _checkpoint_in(path, last=last)
    if path.is_file():
        return path
    raise UserError(_not_found(name))


def _checkpoint_in(folder: Path, *, last: bool) -> Path:
    """Return the best or the last checkpoint in the folder of a run."""
    newest, best = folder / "last.safetensors", folder / "best.safetensors"
    if (folder / "config.json").is_file() and not newest.exists() and not best.exists():
        raise UserError(
            f"{folder} is a Hugging Face folder (it has a config.json), and npformer cannot read these: "
            "give a translator that ships, the folder of a run, or a checkpoint"
        )
    # a run that was stopped before its first validation has no best checkpoint
    return newest if last or not best.exists() else best


def _not_found(name: str) -> str:
    """Return the message for a model that does not exist."""
    if name.endswith(SUFFIX):
        return f"there is no file {name}: check the name and the folder"
    hint = did_you_mean(name, names()) if names() else ""
    if hint.startswith("did"):
        return f"there is no model {name}: {hint}"
    shipped = f"give a translator that ships ({', '.join(names())})"
    other = shipped if names() else "no translator ships with this copy of npformer"
    return f"there is no run {name}: train one with npformer train --run {name}; or {other}"
