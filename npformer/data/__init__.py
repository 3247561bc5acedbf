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
    from npformer.data.base_dataset import Dataset
    from npformer.data.dataset import (
        PairDataset,
        builtin_dataset,
        copy_task,
        files_dataset,
        open_dataset,
        reverse_task,
        task_dataset,
    )
    from npformer.data.monolingual import SentenceDataset, sentence_dataset
    from npformer.data.text import TextDataset, text_dataset

# imported when first used: the grammar of the built-in corpus and the download of another take time to import
_LATER = {
    "Dataset": "base_dataset",
    "PairDataset": "dataset",
    "SentenceDataset": "monolingual",
    "TextDataset": "text",
    "builtin_dataset": "dataset",
    "copy_task": "dataset",
    "files_dataset": "dataset",
    "open_dataset": "dataset",
    "reverse_task": "dataset",
    "sentence_dataset": "monolingual",
    "task_dataset": "dataset",
    "text_dataset": "text",
}

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
    "PairDataset",
    "ParallelText",
    "SentenceDataset",
    "SubwordCodec",
    "TextCodec",
    "TextDataset",
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
    "sentence_dataset",
    "task_dataset",
    "text_dataset",
    "tokenize",
    "truncate",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"npformer.data.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
