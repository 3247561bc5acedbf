"""npformer.load, which loads a trained model by its name, from the folder of a run or from a file."""

import os
from functools import partial
from pathlib import Path
from typing import Any

from npformer.backend import choose_backend
from npformer.data.codecs import read_codecs, require_fit
from npformer.data.encoding import Tokenizer
from npformer.errors import UserError, did_you_mean, in_context
from npformer.generation.codec_tokenizers import LongTextTokenizer, SentenceTokenizer
from npformer.interop import load_folder
from npformer.interop.families.labels import labels_of
from npformer.interop.folder import Progress, checked_dtype
from npformer.interop.generation_file import forced_bos, generation_settings, search_settings
from npformer.interop.library_tokenizer import LibraryTokenizer
from npformer.interop.sentence_files import read_pooling
from npformer.interop.sequence_tokenizers import SourceTokenizer, TargetTokenizer
from npformer.interop.tokenizers import load_tokenizer
from npformer.models.classifier import CLASSIFIERS
from npformer.models.registry import model_from_checkpoint
from npformer.models.transformer import Transformer
from npformer.models.vit import ViT
from npformer.pretrained.images import ImageModel
from npformer.pretrained.loaded import (
    AnyLoaded,
    Loaded,
    TextGenerator,
    Translator,
    loaded_text_model,
    require_kind,
)
from npformer.pretrained.store import SUFFIX, is_pretrained_file, names, pretrained_path, read_pretrained
from npformer.pretrained.unreadable import what_file, what_folder
from npformer.storage.checkpoint import load_checkpoint
from npformer.validation import short

PARTS = ("config.json", "model", "pytorch_model")  # with which the names of the files in such a folder begin


def load(
    model: str | os.PathLike[str],
    *,
    last: bool = False,
    backend: str = "numpy",
    dtype: Any = None,
    progress: Progress | None = None,
) -> Loaded:
    """Load a trained translator, language model, masked language model, classifier or encoder.

    Args:
        model: The name of a translator that ships ("en-de"; `npformer pretrained` lists them), the folder of
            a run, a checkpoint, a file that `npformer pretrained --export` wrote, or a Hugging Face folder
            with a model of a family that `npformer.interop.families` lists, such as GPT-2 or BERT.
        last: Load the last checkpoint in the folder of a run, not the best one.
        backend: "numpy", "cupy", or "auto" for CuPy where there is a GPU.
        dtype: "float32" or "float64". By default, a Hugging Face folder gives a model in float32, and
            everything else one in the precision of its file.
        progress: A function that is called while the tensors of a Hugging Face folder are read, with the
            bytes that were read and the bytes of all.

    Returns:
        The translator, with `.translate(...)`; the language model, with `.generate(...)` and
        `.perplexity(...)`; the masked language model, with `.fill(...)`; the classifier, with
        `.classify(...)`; or an encoder without a head, with `.hidden_states(...)`. Each has `.model`,
        `.tokenizer`, `.logits(...)`, `.attention(...)` and `.saliency(...)`, as far as its head allows them.
        A vision Transformer is an ImageModel, which has the methods for images alone.

    Raises:
        UserError: If there is no such name, folder or file, or if the file is damaged.
    """
    return _load(model, last=last, backend=backend, dtype=dtype, progress=progress)


def load_as(
    wanted: type[AnyLoaded],
    model: str | os.PathLike[str],
    *,
    last: bool = False,
    backend: str = "numpy",
    progress: Progress | None = None,
) -> AnyLoaded:
    """Load a trained model of one kind.

    Args:
        wanted: The class of the kind.
        model, last, backend, progress: As for `load`.

    Raises:
        UserError: As for `load`, and if the model is of another kind.
    """
    remedy = remedy_for(wanted)
    return require_kind(_load(model, last=last, backend=backend, progress=progress, remedy=remedy), wanted)


def remedy_for(wanted: type[Loaded]) -> str:
    """Return what to do if there is no model of a kind, or "" for a translator, since some of them ship."""
    kind = wanted.kind
    return "" if wanted is Translator else f"train a {kind.noun} with {kind.maker}"


def _load(
    model: str | os.PathLike[str],
    *,
    last: bool,
    backend: str,
    dtype: Any = None,
    progress: Progress | None = None,
    remedy: str = "",
) -> Loaded:
    """Load a model as `load` does. If there is none, the message ends with the remedy, unless that is ""."""
    if not isinstance(model, str | os.PathLike) or not os.fspath(model):
        raise UserError(
            f"a model is loaded by its name, folder or file, and not by {short(model)}: give one of these"
        )
    name = os.fspath(model)
    if name not in names() and not last and is_hugging_face_folder(Path(name)):
        dtype = "float32" if dtype is None else dtype
        found: Loaded = _load_hugging_face_folder(name, Path(name), backend, dtype, progress)
        return found
    dtype = None if dtype is None else checked_dtype(dtype)
    loaded = _load_file(name, find_model(name, last=last, remedy=remedy), choose_backend(backend))
    if dtype is not None:
        loaded.model.astype(dtype)
    return loaded


def _load_file(name: str, path: Path, backend: str) -> Loaded:
    """Load the model in an exported file or in a checkpoint. `name` is what the caller of `load` gave."""
    if is_pretrained_file(path):
        content = read_pretrained(path)
        content.model.to(backend)
        return Translator.of_codecs(
            content.model, content.source, content.target, name=name, card=content.card
        )
    checkpoint = load_checkpoint(path)
    if "source" in checkpoint.codecs:
        return Translator.from_checkpoint(checkpoint, backend, name=name)
    ((role, codec),) = read_codecs(checkpoint).items()
    model: Any = model_from_checkpoint(checkpoint, backend)
    with in_context(checkpoint.place):
        require_fit(model.config, {role: codec})
    make_tokenizer: Any = LongTextTokenizer if role == "text" else SentenceTokenizer
    return loaded_text_model(name, model, partial(make_tokenizer, codec))


def is_hugging_face_folder(folder: Path) -> bool:
    """Return whether a folder has a model as `transformers` saves it, and no checkpoint of a run."""
    run = any((folder / f"{checkpoint}.safetensors").exists() for checkpoint in ("last", "best"))
    return (folder / "config.json").is_file() and not run


def _load_hugging_face_folder(
    name: str, folder: Path, backend: str, dtype: Any, progress: Progress | None
) -> Any:
    """Load the model of a Hugging Face folder, a Loaded or an ImageModel.

    A tokenizer is read at the first use of text.
    """
    backend = choose_backend(backend)
    found = load_folder(folder, dtype, progress=progress)
    model = found.model.to(backend)
    if isinstance(model, ViT):
        return ImageModel(name, model, labels_of(found.settings) if model.head is not None else (), folder)
    if isinstance(model, Transformer):
        make_tokenizers = partial(_tokenizers_of_folder, folder, found.family.name, model.config.end_id)
        own_search = partial(search_settings, folder, model.config)
        return Translator(name, model, make_tokenizers, own_search=own_search)
    labels = labels_of(found.settings) if model.config.head in CLASSIFIERS else ()
    make_tokenizer: Any = partial(load_tokenizer, folder, found.family.name)
    loaded = loaded_text_model(name, model, make_tokenizer, labels, partial(read_pooling, folder))
    if isinstance(loaded, TextGenerator):
        loaded.folder = folder
    return loaded


def _tokenizers_of_folder(folder: Path, family: str, end_id: int) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers in the folder of an encoder-decoder model for what it reads and what it writes.

    Raises:
        UserError: If a file is missing or damaged, or if it belongs to another model.
    """
    tokenizer = load_tokenizer(folder, family)
    if isinstance(tokenizer, LibraryTokenizer):
        first = forced_bos(generation_settings(folder))
        return SourceTokenizer(tokenizer, end_id, folder), TargetTokenizer(tokenizer, end_id, folder, first)
    ids = tokenizer.encode("").ids
    if ids != [end_id]:
        raise UserError(
            f"{folder}: the end symbol of the tokenizer has the ids {ids}, and that of the model {[end_id]}: "
            "use the files of one model"
        )
    return tokenizer, tokenizer.for_target


def find_model(name: str, *, last: bool = False, remedy: str = "") -> Path:
    """Return the file of a model, by the name, folder or file that `load` takes.

    Args:
        name: The name, folder or file.
        last: Take the last checkpoint of a run, not its best one.
        remedy: What to do if there is no such model, for the message; by default, train a translator or take
            one that ships.

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
    if path.is_file() and path.name.startswith(PARTS) and is_hugging_face_folder(path.parent):
        raise UserError(f"{path} is a part of the Hugging Face folder {path.parent}: give the folder")
    if path.is_file():
        if said := what_file(path):
            raise UserError(said)
        return path
    raise UserError(_not_found(name, remedy))


def _checkpoint_in(folder: Path, *, last: bool) -> Path:
    """Return the best or the last checkpoint in the folder of a run."""
    newest, best = folder / "last.safetensors", folder / "best.safetensors"
    if is_hugging_face_folder(folder):
        raise UserError(
            f"{folder} is a Hugging Face folder (it has a config.json), which has no checkpoints: give the "
            "folder of a run, or leave out --last (last=True)"
        )
    if not newest.exists() and not best.exists():
        raise UserError(
            what_folder(folder)
            or f"{folder} has neither the checkpoints of a run nor the config.json of a Hugging Face folder: "
            "check the name"
        )
    # a run that was stopped before its first validation has no best checkpoint
    return newest if last or not best.exists() else best


def _not_found(name: str, remedy: str) -> str:
    """Return the message for a model that does not exist."""
    if name.endswith(SUFFIX):
        return f"there is no file {name}: check the name and the folder"
    if remedy:
        return f"there is no run {name}: {remedy}"
    hint = did_you_mean(name, names()) if names() else ""
    if hint.startswith("did"):
        return f"there is no model {name}: {hint}"
    shipped = f"give a translator that ships ({', '.join(names())})"
    other = shipped if names() else "no translator ships with this copy of npformer"
    return (
        f"there is no model {name}: give the folder of a run, which npformer train writes, or of Hugging "
        f"Face, which huggingface-cli download NAME --local-dir FOLDER writes; or {other}"
    )
