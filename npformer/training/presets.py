"""Presets: a dataset, an architecture and training settings that go together, under one name.

`npformer train --preset NAME` trains a model with a preset. An architecture, in contrast, contains only the
settings of a model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from npformer.data.base_dataset import Dataset
from npformer.data.dataset import open_dataset
from npformer.errors import Registry
from npformer.models.registry import ModelConfig, architecture
from npformer.training.config import TrainingConfig


@dataclass(frozen=True)
class Preset:
    """A dataset, an architecture and training settings that go together."""

    name: str
    data: Mapping[str, Any]  # the description from which open_dataset makes the dataset
    architecture: str  # the name of an architecture, see models.registry
    training: TrainingConfig
    downloaded_corpus: bool = False  # it trains on a corpus that must be downloaded, and on no other text
    all_cores: bool = False  # train with one worker for each processor core by default
    # the highest learning rate for another architecture than the preset's, by its name
    learning_rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def reads(self) -> str:
        """The noun for what its architecture trains on: "sentence pairs", "text" or "sentences"."""
        return architecture(self.architecture).reads

    def dataset(self, folder: str | PathLike[str] | None = None) -> Dataset:
        """Return the dataset. `folder` is the folder of a downloaded corpus, if it is not the default one.

        Raises:
            UserError: If a file of the corpus is missing, or a package that it needs is not installed.
        """
        changes = {} if folder is None else {"folder": folder}
        return open_dataset({**self.data, **changes})

    def with_architecture(self, name: str) -> "Preset":
        """Return the preset with another architecture, and with the learning rate that suits it if known.

        With its own architecture, the preset stays as it is.

        Raises:
            UserError: If there is no architecture of this name.
        """
        architecture(name)  # raises UserError if there is none
        rate = None if name == self.architecture else self.learning_rates.get(name)
        training = self.training if rate is None else self.training.replace(learning_rate=rate)
        return replace(self, architecture=name, training=training)

    def model(self, dataset: Dataset, **changes: Any) -> ModelConfig:
        """Return the configuration of the model for the vocabularies of a dataset, with changes.

        Raises:
            UserError: If settings are unknown or do not go together.
        """
        config = architecture(self.architecture)
        dataset.require_reader(config)
        return config.replace(**(dataset.sizes | changes))


# The highest learning rate of each architecture on the built-in corpus: the lowest of 0.002, 0.004 and 0.008
# whose validation loss after 1,500 steps is at most 1 % above the best. `npformer family --search --seed 100`
# measures it with every initialization. The preset "small" itself has a rate of its own.
LEARNING_RATES = {
    "small": 0.004,
    "universal": 0.004,
    "rnn": 0.004,
    "rnn-additive": 0.004,
    "rnn-global": 0.004,
    "rnn-global-feeding": 0.004,
    "rnn-local-m": 0.004,
    "rnn-local-p": 0.004,
}

PRESETS: Registry[Preset] = Registry("preset")


def find_preset(name: str) -> Preset:
    """Return the preset of this name.

    Raises:
        UserError: If there is none. The message suggests the most similar name.
    """
    return PRESETS.find(name)


def _add(name: str, *args: Any, **settings: Any) -> None:
    PRESETS.register(name, Preset(name, *args, **settings))


# the built-in corpus, in less than three minutes on two cores
_add(
    "small",
    {"kind": "builtin"},
    "small",
    TrainingConfig(
        steps=2800,
        batch_size=64,
        schedule="cosine",
        learning_rate=3e-3,
        warmup_steps=280,
        clip_norm=1.0,
        validate_every=400,
        checkpoint_every=200,
    ),
    learning_rates=LEARNING_RATES,
)

# Vaswani et al. 2017, section 5: 25,000 tokens of each language in a batch, and 100,000 steps
_add(
    "paper",
    {"kind": "builtin", "shared": True},
    "paper-base",
    TrainingConfig(steps=100_000, batch_tokens=25_000, validate_every=1000, checkpoint_every=1000),
)

# "Step by step through Attention is All You Need": the code of its demo
_add(
    "jianshu-demo",
    {"kind": "builtin"},
    "jianshu-demo",
    TrainingConfig(epochs=20, batch_size=32, schedule="constant", learning_rate=1e-4, eps=1e-8),
)

# Tiny Shakespeare by subwords: on two cores, in three minutes and in half an hour. A subword stands for two
# characters, so the same context and the same time reach twice as much text as with characters.
_SHAKESPEARE = TrainingConfig(
    steps=1300,
    batch_size=16,
    schedule="cosine",
    learning_rate=4e-3,
    min_learning_rate=1e-4,
    warmup_steps=100,
    betas=(0.9, 0.99),
    eps=1e-8,
    weight_decay=0.1,
    clip_norm=1.0,
    validate_every=325,
    checkpoint_every=200,
)
_TEXT = {"kind": "text", "tokens": "subwords"}
# they read the text 5 and 13 times, and a weight decay larger than usual acts against learning it by heart:
# see docs/training.md
_add(
    "gpt-shakespeare",
    _TEXT,
    "gpt-shakespeare",
    _SHAKESPEARE.replace(optimizer="muon", learning_rate=0.015, weight_decay=0.4),
    all_cores=True,
)
_add(
    "gpt-shakespeare-long",
    _TEXT,
    "gpt-shakespeare-long",
    _SHAKESPEARE.replace(
        steps=1600,
        batch_size=32,
        optimizer="muon",
        learning_rate=0.012,
        weight_decay=0.7,
        warmup_steps=80,
        validate_every=125,
        checkpoint_every=125,
    ),
    all_cores=True,
)

# the English sentences of the built-in corpus, in which a masked language model learns to fill gaps: the
# validation loss after 1,000 steps of a cosine was 1.87 with a learning rate of 2e-3, 1.72 with 4e-3 and 2.60
# with 1e-3, and is 1.05 after these 3,000 steps
_add(
    "bert-small",
    {"kind": "sentences"},
    "bert-small",
    TrainingConfig(
        steps=3000,
        batch_size=64,
        schedule="cosine",
        learning_rate=3e-3,
        warmup_steps=300,
        weight_decay=0.01,
        clip_norm=1.0,
        validate_every=500,
        checkpoint_every=250,
    ),
)

# Multi30k with the Transformer-Tiny of Wu et al. 2021, "Good for misconceived reasons", which reached 41.02
# BLEU on test2016, English to German, on lowercased and tokenised text; with rotary positions, which won the
# trials of docs/model-card.md. Small batches learn more in a short time. The learning rate decays to 0 over
# the last fifth: with sinusoids, the validation loss after 12,000 steps was 1.663 with the decay and 1.704
# without it.
_add(
    "multi30k-en-de",
    {"kind": "multi30k", "direction": "en-de", "subwords": 10_000, "max_length": 100},
    "multi30k-rotary",
    TrainingConfig(
        steps=20_000,
        batch_tokens=2048,
        schedule="warmup",
        factor=2.0,
        warmup_steps=1000,
        decay_share=0.2,
        validate_every=500,
        checkpoint_every=250,
        bleu_every=500,
        average_last=10,
        average_every=250,
    ),
    downloaded_corpus=True,
    all_cores=True,
)
