"""Dataset: the base class of datasets, with everything that training, validation and checkpoints ask of one.

`data/dataset.py` has datasets of sentence pairs, `data/monolingual.py` of sentences without translations, and
`data/text.py` of one long text.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from npformer.data.codecs import AnyCodec
from npformer.data.loader import Example, Loader, TrainingBatch
from npformer.errors import UserError


class Dataset(ABC):
    """The examples of training and validation as token ids, and the codecs that convert text to ids and back.

    Attributes:
        contents: The noun for the examples. A model whose configuration `reads` the same can train on them.
        train: The examples for training.
        valid: The examples for validation.
        description: The arguments as JSON values, from which `open_dataset` makes the dataset again.
    """

    contents: ClassVar[str]
    train: Any
    valid: Any
    description: dict[str, Any]

    @property
    @abstractmethod
    def codecs(self) -> Mapping[str, AnyCodec]:
        """The codecs by their roles: "source" and "target", or "text", or "sentences"."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The sizes of the vocabularies, as settings of a model's configuration."""

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of a hash of the training and validation examples and of the codecs."""
        content = [self.train, self.valid, *(codec.to_json() for codec in self.codecs.values())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    @abstractmethod
    def loader(self, length: int, **batching: Any) -> Loader:
        """Return the loader of the training batches.

        Args:
            length: The largest number of tokens that the model reads at once.
            batching: The settings of the batches, `TrainingConfig.batching`.
        """

    @abstractmethod
    def validation_batches(self, length: int, **batching: Any) -> Sequence[TrainingBatch]:
        """Return all validation examples in batches, the same in every call. Arguments: as for `loader`."""

    def check_model(self, config: Any) -> None:
        """Check that a model can train on this dataset. The base class checks what it reads, and its sizes.

        Args:
            config: The configuration of the model.

        Raises:
            UserError: If it cannot.
        """
        self.require_reader(config)
        for name, size in self.sizes.items():
            if getattr(config, name) != size:
                raise UserError(
                    f"{name} is {getattr(config, name)}, but {self._vocabulary(name, size)}: build the "
                    "configuration with **dataset.sizes"
                )

    @property
    def translations(self) -> Sequence[Example]:
        """The validation pairs whose translations are compared by BLEU; none in a dataset without pairs."""
        return ()

    @property
    def prompt(self) -> Sequence[int]:
        """The tokens after which a language model writes a sample of text; none in a dataset of sentences."""
        return ()

    @property
    def tokens_per_character(self) -> float | None:
        """The number of tokens for each character of the validation text; None in a dataset of sentences."""
        return None

    @property
    def remarks(self) -> list[str]:
        """Sentences for the user about the text that was read."""
        return []

    def require_reader(self, config: Any) -> None:
        """Raise UserError if a model of this configuration reads something else than this dataset has."""
        if config.reads != self.contents:
            raise UserError(
                f"the model reads {config.reads} and the dataset has {self.contents}: choose another "
                "architecture, or other data"
            )

    def _vocabulary(self, name: str, size: int) -> str:
        """Return the words of a message about the size of a vocabulary, a setting with this name."""
        side = name.removesuffix("vocab_size").replace("_vocab", " ")
        return f"the dataset's {side}vocabulary has {size} entries"
