"""Llama, a GPT with RMS norms, rotary positions, SwiGLU and shared heads of keys (models/gpt/).

Its linear maps are stored as (out, in), so all are transposed, and queries, keys and values lie in three
tensors. Many families have its names, and begin with the tables of this file.

Source: Touvron et al. 2023; https://huggingface.co/docs/transformers/model_doc/llama.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import HEAD, LayerShape, layer_rows, linear_rows, with_head
from npformer.interop.families.settings_table import USUAL, SettingRow, SettingTable, count, flag, number
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

# the parts of a layer, in our names and in theirs; the norms have gains alone
LAYER = {
    "self_attention": [f"self_attn.{part}_proj" for part in "qkvo"],
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.value": "mlp.up_proj",
    "feed_forward.outer": "mlp.down_proj",
}
NORMS = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
# the activation of the gate in a config.json, and our gated activation
GATES = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu", "gelu_pytorch_tanh": "geglu_tanh"}
ROTARY_TYPES = {"default": "none", "llama3": "llama3"}
ROWS = (
    count("vocab_size", "vocab_size"),
    count("d_model", "hidden_size"),
    count("d_ff", "intermediate_size"),
    count("n_layers", "num_hidden_layers"),
    count("n_heads", "num_attention_heads"),
    count("n_kv_heads", "num_key_value_heads", USUAL),
    count("head_dim", "head_dim", USUAL),
    count("context", "max_position_embeddings", 2048),
    number("norm_eps", "rms_norm_eps", 1e-6),
    SettingRow(GATES, "activation", "hidden_act", "silu"),
    flag("tied", "tie_word_embeddings", False),
    SettingRow(None, "dropout", "attention_dropout"),
)
# by default ids of tokens that are like all others in our models
NO_IDS = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))


def require_equal_biases(settings: Settings) -> bool:
    """Return whether a Llama has biases, and refuse one that has them in some linear maps only."""
    bias = settings.flag("attention_bias", False)
    if settings.flag("mlp_bias", False) != bias:
        raise UserError(
            f"attention_bias and mlp_bias differ in {settings.place}, and npformer supports Llamas with both "
            "biases or with none: use another model"
        )
    return bias


def require_no_windows(settings: Settings, n_layers: int, full: int | None = None) -> None:
    """Refuse a file in which some layers have a sliding window that is in use.

    Args:
        settings: The settings.
        n_layers: The number of layers.
        full: The number of the first layers, which have no window; None means that the file has it.
    """
    full = settings.index("max_window_layers", 28) if full is None else full
    types = settings.values.get("layer_types")
    in_use = settings.flag("use_sliding_window", False) and full < n_layers
    if in_use if types is None else types != ["full_attention"] * len(types):
        raise UserError(
            f"{settings.place} asks for attention with a sliding window in some layers, which npformer does "
            "not support in this family: use another model"
        )


@dataclass(frozen=True)
class LlamaTable(SettingTable):
    """The settings of a Llama or of a family that has their names.

    Dropout, which acts only in training, is left out.

    Attributes:
        defaults: The settings that a file may leave out, if they are not those of Llama.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)

    def read(self, settings: Settings, **others: Any) -> Any:
        """Return our configuration, as SettingTable.read does."""
        settings = Settings({**self.defaults, **settings.values}, settings.place)
        config = super().read(settings, **_rotary_settings(settings), **others)
        settings.require_table("max_position_embeddings", config.context, config.d_head // 2)
        return config

    def written(self, config: Any, **others: Any) -> dict[str, Any]:
        """Return the content of a config.json, as SettingTable.written does."""
        return super().written(config, **{"rope_parameters": _rope_parameters(config)} | others)


def llama_table(
    config: Callable[..., GPTConfig],
    family: str,
    name: str,
    *rows: SettingRow,
    only: Mapping[str, Any] = MappingProxyType({}),
    defaults: Mapping[str, Any] = MappingProxyType({}),
    **ours: Any,
) -> LlamaTable:
    """Return the settings of a Llama or of a family that has their names.

    Args:
        config: The class of our configuration.
        family: The family, such as "llama".
        name: The beginning of the names of its classes, such as "Llama".
        rows: The settings that Llama does not have, or that replace those of Llama.
        only: The settings of a file that have one supported value, which is the default there.
        defaults: The settings that a file may leave out, if they are not those of Llama.
        ours: Our settings for which the family has one value, if that is not our default.
    """
    theirs = {"model_type": family, "architectures": [f"{name}ForCausalLM"], **NO_IDS}
    ours = {"norm": "rms", "positions": "rotary", **ours}
    kept = [row for row in ROWS if row.ours not in {new.ours for new in rows if new.kind is not None}]
    return LlamaTable(config, (*kept, *rows), only, ours, theirs, defaults)


def _rotary_settings(settings: Settings) -> dict[str, Any]:
    """Return our settings of rotary positions, from either of the two forms in which files have them."""
    # older files have the base beside the others, and "type" for "rope_type"
    name = "rope_scaling" if settings.has("rope_scaling") else "rope_parameters"
    rope = settings.part(name)
    if any(isinstance(value, dict) for value in rope.values.values()):
        raise UserError(
            f"{rope.place} differs from layer to layer: npformer has one for all, use another model"
        )
    kind = "rope_type" if rope.has("rope_type") else "type"
    ours = {
        "rotary_base": rope.number("rope_theta", settings.number("rope_theta", 10000.0)),
        "rotary_scaling": rope.choice(kind, ROTARY_TYPES, "default"),
    }
    for each in (settings, rope):
        if each.number("partial_rotary_factor", 1.0) != 1.0:
            raise UserError(
                f"{each.place} asks for rotary positions of a part of each head, which npformer does not "
                "support: use another model"
            )
    if ours["rotary_scaling"] == "llama3":
        ours |= {
            "rotary_factor": rope.number("factor"),
            "rotary_low_factor": rope.number("low_freq_factor"),
            "rotary_high_factor": rope.number("high_freq_factor"),
            "rotary_original_context": rope.count(
                "original_max_position_embeddings", settings.count("max_position_embeddings", 2048)
            ),
        }
    return ours


def _rope_parameters(config: GPTConfig) -> dict[str, Any]:
    """Return the object rope_parameters of a config.json."""
    if config.scaling is None:
        return {"rope_type": "default", "rope_theta": config.rotary_base}
    return {
        "rope_type": "llama3",
        "rope_theta": config.rotary_base,
        "factor": config.rotary_factor,
        "low_freq_factor": config.rotary_low_factor,
        "high_freq_factor": config.rotary_high_factor,
        "original_max_position_embeddings": config.rotary_original_context,
    }


def rows(config: GPTConfig, norms: Mapping[str, str] = NORMS, *, added: float = 0.0) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file.

    Args:
        config: Our configuration.
        norms: The norms of a layer, in our names and in theirs.
        added: What our gains of norms are more than those of the file.
    """
    d, v = config.d_model, config.vocab_size
    heads, key_heads = config.n_heads * config.d_head, config.key_heads * config.d_head
    shape = LayerShape(d, config.hidden_width, heads, key_heads, config.bias, config.has_qkv_bias)
    yield WeightRow("embedding.tokens.weight", (v, d), ("model.embed_tokens.weight",))
    for i in range(config.n_layers):
        yield from layer_rows(f"layers.{i}", f"model.layers.{i}", LAYER, shape)
        for ours, theirs in norms.items():
            gain = (f"model.layers.{i}.{theirs}.weight",)
            yield WeightRow(f"layers.{i}.{ours}.gain", (d,), gain, added=added)
    yield WeightRow("norm.gain", (d,), ("model.norm.weight",), added=added)
    if config.head and not config.tied:
        yield from linear_rows("output", ["lm_head"], d, v, bias=False)


def gain_rows(config: GPTConfig, *, whole: bool = False, added: float = 0.0) -> Iterator[WeightRow]:
    """Yield the rows of the gains of QK-norm.

    Args:
        config: Our configuration.
        whole: True if all heads are normalized together, with one gain for their whole width.
        added: What our gains are more than those of the file.
    """
    heads, key_heads = (config.n_heads, config.key_heads) if whole else (1, 1)
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}.self_attention", f"model.layers.{i}.self_attn"
        for gain, norm, n in (("query_gain", "q_norm", heads), ("key_gain", "k_norm", key_heads)):
            width, tensor = n * config.d_head, f"{theirs}.{norm}.weight"
            yield WeightRow(f"{ours}.{gain}", (width,), (tensor,), added=added)


def tensor_name(name: str, config: GPTConfig) -> str | None:
    """Return the name of a tensor, or None for a table of angles or the copy of a tied weight.

    Older files hold the angles of the rotary positions, which follow from the settings. Files without the
    head lack the prefix.
    """
    if name.startswith(("embed_tokens.", "layers.", "norm.")):
        name = f"model.{name}"
    if name.endswith(".rotary_emb.inv_freq") or (name == HEAD and config.tied):
        return None
    return name


SETTINGS = llama_table(GPTConfig, "llama", "Llama")


def config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of a Llama."""
    config: GPTConfig = SETTINGS.read(settings, bias=require_equal_biases(settings))
    return config


def settings_of(config: GPTConfig) -> dict[str, Any]:
    """Return the content of a config.json."""
    return SETTINGS.written(config, attention_bias=config.bias, mlp_bias=config.bias)


LLAMA = Family("llama", GPT, config_of, settings_of, rows, tensor_name, with_head)
