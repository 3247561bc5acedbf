"""From text to batches: reading files, splitting words, numbering them, and grouping sentences."""

from npformer.data.batches import Batch, Example, example_lengths, make_batch, pad, plan_batches, truncate
from npformer.data.codecs import Codec, codec_from_json
from npformer.data.files import ParallelText, read_lines, read_parallel
from npformer.data.subwords import SubwordCodec
from npformer.data.tasks import copy_task, reverse_task
from npformer.data.tokens import LANGUAGES, Language, detokenize, language_of, tokenize
from npformer.data.vocabulary import END, PAD, SPECIALS, START, UNK, TextCodec, Vocabulary

__all__ = [
    "END",
    "LANGUAGES",
    "PAD",
    "SPECIALS",
    "START",
    "UNK",
    "Batch",
    "Codec",
    "Example",
    "Language",
    "ParallelText",
    "SubwordCodec",
    "TextCodec",
    "Vocabulary",
    "codec_from_json",
    "copy_task",
    "detokenize",
    "example_lengths",
    "language_of",
    "make_batch",
    "pad",
    "plan_batches",
    "read_lines",
    "read_parallel",
    "reverse_task",
    "tokenize",
    "truncate",
]
