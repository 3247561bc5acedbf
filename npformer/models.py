"""The models that translate, by the configurations that make them."""

from typing import Any

import numpy as np

from npformer.backend import to_numpy
from npformer.errors import UserError
from npformer.recurrent import RecurrentConfig, RecurrentTranslator, TranslatorCache
from npformer.recurrent.presets import PRESETS as RECURRENT_PRESETS
from npformer.settings import choose_preset
from npformer.transformer import PRESETS, Transformer, TransformerConfig

ModelConfig = TransformerConfig | RecurrentConfig
Model = Transformer | RecurrentTranslator

# what a checkpoint calls a kind of configuration
KINDS: dict[str, type[ModelConfig]] = {"transformer": TransformerConfig, "recurrent": RecurrentConfig}


def build(config: ModelConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32) -> Model:
    """The model of a configuration."""
    if isinstance(config, RecurrentConfig):
        return RecurrentTranslator(config, rng=rng, dtype=dtype)
    return Transformer(config, rng=rng, dtype=dtype)


def kind_of(config: ModelConfig) -> str:
    """The name of a configuration's kind."""
    return next(kind for kind, made in KINDS.items() if isinstance(config, made))


def preset(name: str, **changes: Any) -> ModelConfig:
    """The configuration of that name, with some settings changed.

    Errors: UserError for an unknown name, with the nearest, or for settings that cannot be.
    """
    return preset_class(name).preset(name, **changes)


def preset_class(name: str) -> type[ModelConfig]:
    """The kind of configuration that a preset is. Errors: UserError for an unknown name, with the nearest."""
    known = choose_preset(name, [*PRESETS, *RECURRENT_PRESETS])
    return RecurrentConfig if known in RECURRENT_PRESETS else TransformerConfig


def require_transformer(config: ModelConfig, what: str) -> None:
    """Errors: UserError where something that only a Transformer has is asked of another model."""
    if not isinstance(config, TransformerConfig):
        raise UserError(f"{what} a Transformer, and this run is a {kind_of(config)} one: give another run")


def attention_layers(cache: Any, kind: str) -> list[np.ndarray]:
    """The attention weights of every layer, each (B, H, T, S), on the host; [] where a model has none.

    kind: "encoder", "decoder" (self-attention) or "cross". A recurrent decoder has one layer of one head.
    """
    if isinstance(cache, TranslatorCache):
        weights = cache.decoder.weights  # (B, T, S)
        return [] if kind != "cross" or weights is None else [to_numpy(weights)[:, None]]
    if kind == "encoder":
        caches = [layer.self_attention for layer in cache.encoder.layers]
    else:
        caches = [layer.cross if kind == "cross" else layer.self_attention for layer in cache.decoder.layers]
    return [to_numpy(each.attention.weights) for each in caches]
