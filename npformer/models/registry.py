"""Functions that find a named architecture, and that build a model from a configuration or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npformer.backend import to_numpy
from npformer.errors import Registry, UserError, did_you_mean, in_context
from npformer.models.bart import Bart, BartConfig
from npformer.models.bert import Bert, BertConfig
from npformer.models.deepseek import DeepSeek, DeepSeekConfig
from npformer.models.encoder import EncoderModelCache
from npformer.models.gemma import Gemma, GemmaConfig
from npformer.models.gemma2 import Gemma2, Gemma2Config
from npformer.models.gpt import GPT, GPTCache, GPTConfig
from npformer.models.gpt_neox import GPTNeoX, GPTNeoXConfig
from npformer.models.mixture import Mixture, MixtureConfig
from npformer.models.olmo2 import Olmo2, Olmo2Config
from npformer.models.qwen3 import Qwen3, Qwen3Config
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator, TranslatorCache
from npformer.models.settings import ModelSettings
from npformer.models.smollm3 import SmolLM3, SmolLM3Config
from npformer.models.t5 import T5, T5Config
from npformer.models.transformer import Transformer, TransformerCache, TransformerConfig
from npformer.models.universal import UniversalConfig, UniversalTransformer
from npformer.models.vit import ViT, ViTConfig
from npformer.storage.checkpoint import Checkpoint
from npformer.validation import require_file_settings, short

# a UniversalConfig is a TransformerConfig
TranslatorConfig = TransformerConfig | RecurrentConfig
ModelConfig = TranslatorConfig | GPTConfig | BertConfig
Model = Transformer | RecurrentTranslator | GPT | Bert
# of forward of any model
ModelCache = TransformerCache | TranslatorCache | GPTCache | EncoderModelCache

# the name of each kind of configuration in a checkpoint
KINDS: dict[str, type[ModelConfig]] = {
    "transformer": TransformerConfig,
    "recurrent": RecurrentConfig,
    "universal": UniversalConfig,
    "gpt": GPTConfig,
    "bert": BertConfig,
    "qwen3": Qwen3Config,
    "olmo2": Olmo2Config,
    "smollm3": SmolLM3Config,
    "gpt_neox": GPTNeoXConfig,
    "gemma": GemmaConfig,
    "gemma2": Gemma2Config,
    "mixture": MixtureConfig,
    "bart": BartConfig,
    "deepseek": DeepSeekConfig,
    "t5": T5Config,
}
# the class of the model of each configuration
CLASSES: dict[type[ModelSettings], Any] = {
    TransformerConfig: Transformer,
    RecurrentConfig: RecurrentTranslator,
    UniversalConfig: UniversalTransformer,
    BartConfig: Bart,
    T5Config: T5,
    ViTConfig: ViT,
    BertConfig: Bert,
    GPTConfig: GPT,
    Qwen3Config: Qwen3,
    Olmo2Config: Olmo2,
    SmolLM3Config: SmolLM3,
    GPTNeoXConfig: GPTNeoX,
    GemmaConfig: Gemma,
    Gemma2Config: Gemma2,
    MixtureConfig: Mixture,
    DeepSeekConfig: DeepSeek,
}

LARGEST_TABLE = 2**28  # numbers in a table of positions, which is not in the file

ARCHITECTURES: Registry[ModelConfig] = Registry("architecture")
for _class in KINDS.values():
    for _name in _class.named.names():
        # "small" is a Transformer
        _own = "gpt-small" if _class is GPTConfig and _name == "small" else _name
        ARCHITECTURES.register(_own, _class.preset(_name))


def build(config: ModelConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32) -> Model:
    """Return a model with random parameters.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    model: Model = CLASSES[type(config)](config, rng=rng, dtype=dtype)
    return model


def kind_of(config: ModelConfig) -> str:
    """Return the kind of a configuration, its name in KINDS."""
    return next(kind for kind, config_class in KINDS.items() if type(config) is config_class)


def config_from_settings(kind: str, settings: Mapping[str, Any]) -> ModelConfig:
    """Return the configuration of a kind with the settings that its `to_dict()` returned.

    Raises:
        UserError: If the kind or a setting is unknown, or if a setting is of a wrong type or impossible.
    """
    if kind not in KINDS:
        raise UserError(
            f"the kind of the model is {short(kind)}, perhaps of a newer npformer: "
            f"{did_you_mean(kind, KINDS)}"
        )
    settings = {**KINDS[kind].later, **settings}
    require_file_settings(KINDS[kind], settings)
    return KINDS[kind]().replace(**settings)


def config_from_checkpoint(checkpoint: Checkpoint) -> ModelConfig:
    """Return the configuration of the model in a checkpoint.

    Raises:
        UserError: If the kind or a setting is unknown, or if a setting is of a wrong type or impossible.
    """
    with in_context(checkpoint.place):
        return config_from_settings(checkpoint.model_kind, checkpoint.model_settings)


def require_size(config: ModelConfig, state: Mapping[str, np.ndarray]) -> None:
    """Raise UserError if a model is much larger than a state, before it is built and uses memory."""
    size = sum(array.size for array in state.values())
    if config.least_parameters > size:
        raise UserError(
            f"the settings describe a model of more than {short(config.least_parameters)} numbers, and the "
            f"file has {size:,}: use an undamaged file"
        )
    if config.max_length * config.d_model > LARGEST_TABLE:
        raise UserError(
            f"max_length is {config.max_length:,}, and the table of positions would have more than "
            f"{LARGEST_TABLE:,} numbers: use an undamaged file"
        )


def model_from_checkpoint(checkpoint: Checkpoint, backend: str = "numpy") -> Model:
    """Return the model of a checkpoint, with arrays of the backend "numpy" or "cupy".

    Raises:
        UserError: If its settings are impossible, or if they do not fit its parameters.
    """
    config = config_from_checkpoint(checkpoint)
    dtype = next(iter(checkpoint.parameters.values())).dtype
    with in_context(checkpoint.place):
        return model_from_state(config, checkpoint.parameters, dtype).to(backend)


def model_from_state(config: ModelConfig, state: Mapping[str, np.ndarray], dtype: Any) -> Model:
    """Return a model with the values of a state.

    Args:
        config: The configuration.
        state: The values of each parameter by its dotted name.
        dtype: The dtype of the model.

    Raises:
        UserError: If the configuration does not fit the parameters. A model that is much larger than they
            are is not even built.
    """
    require_size(config, state)
    model = build(config, dtype=dtype)
    model.load_state_dict(dict(state))
    return model


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
    if kind_of(config) != "transformer":
        raise UserError(f"{what} a Transformer, and this model is {kind_of(config)}: give another model")


def attention_layers(cache: ModelCache, kind: str) -> list[np.ndarray]:
    """Return the attention weights of all layers.

    Args:
        cache: The cache of a Transformer, a UniversalTransformer, a RecurrentTranslator, a GPT or a Bert.
        kind: "encoder", "decoder" (its self-attention) or "cross", and for a GPT, a Bert or a ViT "self". A
            recurrent decoder has only "cross", with one layer and one head. In a UniversalTransformer, each
            step of its layer counts as a layer.

    Returns:
        NumPy arrays of shape (B, H, T, S), one for each layer. The list is empty if the model has no such
        attention.
    """
    if isinstance(cache, TranslatorCache):
        weights = cache.decoder.weights  # (B, T, S)
        return [] if kind != "cross" or weights is None else [to_numpy(weights)[:, None]]
    if isinstance(cache, GPTCache):
        layers: Sequence[Any] = cache.layers
    elif isinstance(cache, TransformerCache) and kind != "encoder":
        layers = cache.decoder.layers
    else:
        layers = cache.encoder.layers
    part = "cross" if kind == "cross" else "self_attention"
    return [to_numpy(getattr(layer, part).attention.weights) for layer in layers]


def attention_arrays(cache: ModelCache) -> dict[str, np.ndarray]:
    """Return the attention weights of all layers as one array for each kind of attention.

    Args:
        cache: The cache of a Transformer, a UniversalTransformer, a RecurrentTranslator, a GPT or a Bert.

    Returns:
        A dict from the kinds that the model has, "self" or some of "encoder", "decoder" and "cross", to NumPy
        arrays of shape (L, B, H, queries, keys).
    """
    kinds = ("self",) if isinstance(cache, (GPTCache, EncoderModelCache)) else ("encoder", "decoder", "cross")
    layers = {kind: attention_layers(cache, kind) for kind in kinds}
    return {kind: np.stack(each) for kind, each in layers.items() if each}
