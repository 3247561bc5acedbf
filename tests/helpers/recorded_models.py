"""The data of recorded pages of tiny models of every kind and family, for tests."""

import atexit
import functools
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import hugging_face_folders as folders
from marian_folders import marian_folder, sentences
from tiny_runs import CHARACTERS, bert_checkpoint, gpt_checkpoint
from word_translator import word_translator

import npformer
from npformer.explorer import recorded
from npformer.interop import families
from npformer.interop.settings_file import Settings
from npformer.storage.checkpoint import save_checkpoint

DOG = "the dog is tired"
TEXTS = {"marian": sentences(5)[4], "translator": DOG, "gpt": "the cat ate", "bert": "the [MASK] sees a dog"}
PRE = {"norm": "pre", "final_norm": True}


def family(of, settings):
    """Return the settings of a tiny GPT with those of a Hugging Face folder."""
    return of.config_of(Settings(settings | {"vocab_size": len(CHARACTERS.tokens)})).to_dict()


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"rope_theta": 1e4, "original_max_position_embeddings": 8}
FEW_WORDS = {"LARGEST_VOCABULARY": 5, "MOST_PROBABLE": 1}
MODELS = {
    "post-norm": ("translator", {}),
    "pre-norm": ("translator", {**PRE, "label_smoothing": 0.2, "tied": "none", "output_bias": True}),
    "fused": ("translator", {**PRE, "fused_projections": True, "activation": "gelu", "d_value": 5}),
    "sequence": ("translator", {"norm": "n-dan", "activation": "gelu_tanh", "positions": "learned"}),
    "relative": ("translator", {"positions": "relative", "max_distance": 2, "projection_activation": "relu"}),
    "rotary": ("translator", {"positions": "rotary", "fused_projections": True}),
    "added mask": ("translator", {"masking_how": "add", "mask_fill": -1e9, "attention_output": False}),
    "swish projections": ("translator", {"projection_activation": "swish", "zero_padding": True}),
    "large vocabulary": (
        "translator",
        {"tied": "output", "output_bias": True, "label_smoothing": 0.1},
        FEW_WORDS,
    ),
    "gpt": ("gpt", {}),
    "gpt2": ("gpt", family(families.GPT2, folders.GPT2) | {"context": 12}),
    "untied gpt": ("gpt", {"tied": False, "window": 3, "activation": "gelu"}),
    "untied vocabulary": ("gpt", {"tied": False}, FEW_WORDS),
    "llama": ("gpt", family(families.LLAMA, folders.LLAMA)),
    "llama 3.1": ("gpt", family(families.LLAMA, folders.LLAMA | {"rope_parameters": LLAMA3})),
    "qwen2": ("gpt", family(families.QWEN2, folders.QWEN2)),
    "interleaved": ("gpt", {"positions": "rotary", "rotary_layout": "interleaved"}),
    "shared heads": ("gpt", {"n_heads": 4, "n_kv_heads": 2, "activation": "swish"}),
    "geglu": ("gpt", {"activation": "geglu", "bias": False}),
    "bert": ("bert", {}),
    "bert vocabulary": ("bert", {}, FEW_WORDS),
    "distilbert": ("bert", {"n_segments": 0, "activation": "gelu_tanh"}),
    "roberta": ("bert", {"n_segments": 1, "first_position": 1}),
    "marian": ("marian", {}),
}


@functools.cache
def _folder():
    """Return a folder that lasts as long as this process: Marian's files are read when they are needed."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def load(kind, **changes):
    """Return a tiny model of some kind with some settings, as npformer.load returns one."""
    if kind == "translator":
        return word_translator(**changes)
    if kind == "marian":
        return npformer.load(_marian(), dtype="float64")
    make = {"gpt": gpt_checkpoint, "bert": bert_checkpoint}[kind]
    save_checkpoint(make(**changes), _folder() / "run.safetensors")
    return npformer.load(_folder() / "run.safetensors")


@functools.cache
def _marian():
    return marian_folder(_folder() / "marian")


@functools.cache
def recorded_data_of(name):
    """Return the data of the recorded page of one of the models. No test changes them."""
    kind, changes, *limits = MODELS[name]
    with ExitStack() as patches:
        for limit, value in (limits[0] if limits else {}).items():
            patches.enter_context(patch.object(recorded, limit, value))
        return recorded.recorded_data(load(kind, **changes), TEXTS[kind])
