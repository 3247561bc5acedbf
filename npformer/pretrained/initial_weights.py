"""The weights of a trained model, with which another training begins."""

import os
from pathlib import Path
from typing import Any

from npformer.backend import Array
from npformer.data.base_dataset import Dataset
from npformer.errors import UserError
from npformer.models.registry import ModelConfig, kind_of
from npformer.pretrained.loaded import Loaded, Translator
from npformer.pretrained.loading import is_hugging_face_folder, load
from npformer.pretrained.store import names

# settings of a model that only training uses
OF_TRAINING = {
    "dropout",
    "embedding_dropout",
    "attention_dropout",
    "feed_forward_dropout",
    "label_smoothing",
    "ponder_weight",
}


def initial_weights(model: str | os.PathLike[str], config: ModelConfig, dataset: Dataset) -> dict[str, Array]:
    """Return the weights of a trained model, for the argument `initial` of `npformer.training.train`.

    Args:
        model: The model that was trained before: what `npformer.load` takes.
        config: The configuration of the model that will be trained.
        dataset: The dataset that it will be trained on.

    Returns:
        The weights by their dotted names.

    Raises:
        UserError: If there is no such model, if it comes from a Hugging Face folder, or if its configuration
            or its tokens differ. Dropout, label smoothing and the weight of the ponder cost may differ.
    """
    loaded = load(_own(os.fspath(model)))
    _require_same_kind(loaded, config)
    _require_same_tokens(loaded, dataset)
    _require_same_settings(loaded, config)
    return loaded.model.state_dict()


def _own(name: str) -> str:
    """Return the name of a model, or raise UserError if it is a Hugging Face folder."""
    if name not in names() and is_hugging_face_folder(Path(name)):
        raise UserError(
            f"{name} is a Hugging Face folder, whose tokenizer cannot read the data of a training here: "
            "begin with a model that npformer trained, or leave out --start-from"
        )
    return name


def _require_same_kind(loaded: Loaded, config: ModelConfig) -> None:
    """Raise UserError if the two models have different architectures."""
    own, wanted = kind_of(loaded.model.config), kind_of(config)
    if own != wanted:
        raise UserError(
            f"{loaded.name} is a model of the kind {own} and the new run trains one of the kind {wanted}: "
            "choose another --architecture or --preset, or leave out --start-from"
        )


def _require_same_tokens(loaded: Loaded, dataset: Dataset) -> None:
    """Raise UserError if a vocabulary of the dataset has other tokens, or the same in another order."""
    own = _codecs(loaded)
    for role, codec in dataset.codecs.items():
        if role not in own or own[role].tokens != codec.tokens:
            raise UserError(
                f"the {role} vocabulary of {loaded.name} is not that of the data: begin with a model that "
                "was trained on the same data, or leave out --start-from"
            )


def _codecs(loaded: Loaded) -> dict[str, Any]:
    """Return the codecs of a model that npformer trained, by the names of their roles in a dataset."""
    if isinstance(loaded, Translator):
        return dict(loaded.codec._asdict())
    tokenizer: Any = loaded.tokenizer
    return {"text": tokenizer.codec, "sentences": tokenizer.codec}


def _require_same_settings(loaded: Loaded, config: ModelConfig) -> None:
    """Raise UserError if two models of these configurations would compute different things."""
    settings = config.to_dict()
    for name, value in loaded.model.config.to_dict().items():
        if name not in OF_TRAINING and settings[name] != value:
            raise UserError(
                f"{name} is {value} in {loaded.name} and {settings[name]} in the new run: add --set "
                f"{name}={value}, or leave out --start-from"
            )
