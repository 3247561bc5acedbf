"""From text to batches: files, tokenizers, vocabularies and codecs, datasets, and the data loader."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from npformer.data.codecs import Codec, TextCodec, codec_from_json
from npformer.data.files import ParallelText, read_lines, read_parallel
from npformer.data.loader import (
    Batch,
    DataLoader,
    Example,
    example_lengths,
    make_batch,
    pad,
    plan_batches,
    truncate,
)
from npformer.data.subwords import SubwordCodec
from npformer.data.tokens import LANGUAGES, Language, detokenize, language_of, tokenize
from npformer.data.vocabulary import END, PAD, SPECIALS, START, UNK, Vocabulary

if TYPE_CHECKING:
    from npformer.data.dataset import (
        Dataset,
        builtin_dataset,
        copy_task,
        files_dataset,
        open_dataset,
        reverse_task,
        task_dataset,
    )

# imported when first used: the grammar of the built-in corpus and the download of another take time to import
_OF_DATASET = (
    "Dataset",
    "builtin_dataset",
    "copy_task",
    "files_dataset",
    "open_dataset",
    "reverse_task",
    "task_dataset",
)

__all__ = [
    "END",
    "LANGUAGES",
    "PAD",
    "SPECIALS",
    "START",
    "UNK",
    "Batch",
    "Codec",
    "DataLoader",
    "Dataset",
    "Example",
    "Language",
    "ParallelText",
    "SubwordCodec",
    "TextCodec",
    "Vocabulary",
    "builtin_dataset",
    "codec_from_json",
    "copy_task",
    "detokenize",
    "example_lengths",
    "files_dataset",
    "language_of",
    "make_batch",
    "open_dataset",
    "pad",
    "plan_batches",
    "read_lines",
    "read_parallel",
    "reverse_task",
    "task_dataset",
    "tokenize",
    "truncate",
]


def __getattr__(name: str) -> Any:
    if name in _OF_DATASET:
        return getattr(import_module("npformer.data.dataset"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
