"""Functions that find a named architecture, and that build a model from a configuration or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npformer.backend import to_numpy
from npformer.errors import Registry, UserError
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator, TranslatorCache
from npformer.models.recurrent.config import ARCHITECTURES as RECURRENT_ARCHITECTURES
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.models.transformer.config import ARCHITECTURES as TRANSFORMER_ARCHITECTURES
from npformer.storage.checkpoint import Checkpoint

ModelConfig = TransformerConfig | RecurrentConfig
Model = Transformer | RecurrentTranslator

# the name of each kind of configuration in a checkpoint
KINDS: dict[str, type[ModelConfig]] = {"transformer": TransformerConfig, "recurrent": RecurrentConfig}

ARCHITECTURES: Registry[ModelConfig] = Registry("architecture")
for _name in TRANSFORMER_ARCHITECTURES.names():
    ARCHITECTURES.register(_name, TransformerConfig.architecture(_name))
for _name in RECURRENT_ARCHITECTURES.names():
    ARCHITECTURES.register(_name, RecurrentConfig.architecture(_name))


def build(config: ModelConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32) -> Model:
    """Return a model with random parameters.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    if isinstance(config, RecurrentConfig):
        return RecurrentTranslator(config, rng=rng, dtype=dtype)
    return Transformer(config, rng=rng, dtype=dtype)


def kind_of(config: ModelConfig) -> str:
    """Return the kind of a configuration, "transformer" or "recurrent"."""
    return next(kind for kind, config_class in KINDS.items() if isinstance(config, config_class))


def config_from_settings(kind: str, settings: Mapping[str, Any]) -> ModelConfig:
    """Return the configuration of a kind of KINDS with the settings that its `to_dict()` returned."""
    return KINDS[kind]().replace(**settings)


def config_from_checkpoint(checkpoint: Checkpoint) -> ModelConfig:
    """Return the configuration of the model in a checkpoint."""
    return config_from_settings(checkpoint.model_kind, checkpoint.model_settings)


def model_from_checkpoint(checkpoint: Checkpoint, backend: str = "numpy") -> Model:
    """Return the model of a checkpoint, with arrays of the backend "numpy" or "cupy"."""
    dtype = next(iter(checkpoint.parameters.values())).dtype
    model = build(config_from_checkpoint(checkpoint), dtype=dtype)
    model.load_state_dict(checkpoint.parameters)
    return model.to(backend)


def architecture(name: str, **changes: Any) -> ModelConfig:
    """Return the configuration of the architecture with this name, with some settings changed.

    Raises:
        UserError: If the name or a setting is unknown, or if two settings contradict each other.
    """
    return ARCHITECTURES.find(name).replace(**changes)


def architecture_class(name: str) -> type[ModelConfig]:
    """Return the class of an architecture's configuration.

    Raises:
        UserError: If the name is unknown.
    """
    return type(ARCHITECTURES.find(name))


def require_transformer(config: ModelConfig, what: str) -> None:
    """Check that a configuration is that of a Transformer.

    Args:
        config: The configuration.
        what: The beginning of the error message, up to the verb.

    Raises:
        UserError: If it is the configuration of another model.
    """
    if not isinstance(config, TransformerConfig):
        raise UserError(f"{what} a Transformer, and this model is {kind_of(config)}: give another model")


def attention_layers(cache: Any, kind: str) -> list[np.ndarray]:
    """Return the attention weights of all layers.

    Args:
        cache: The cache of a Transformer or of a RecurrentTranslator.
        kind: "encoder", "decoder" (its self-attention) or "cross". A recurrent decoder has only "cross", with
            one layer and one head.

    Returns:
        NumPy arrays of shape (B, H, T, S), one for each layer. The list is empty if the model has no such
        attention.
    """
    if isinstance(cache, TranslatorCache):
        weights = cache.decoder.weights  # (B, T, S)
        return [] if kind != "cross" or weights is None else [to_numpy(weights)[:, None]]
    if kind == "encoder":
        caches = [layer.self_attention for layer in cache.encoder.layers]
    else:
        caches = [layer.cross if kind == "cross" else layer.self_attention for layer in cache.decoder.layers]
    return [to_numpy(cache.attention.weights) for cache in caches]
