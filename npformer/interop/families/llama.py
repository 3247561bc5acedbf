"""Llama and Qwen2: https://huggingface.co/docs/transformers/model_doc/llama and .../qwen2.

Their linear maps are stored as (out, in), so all are transposed, and queries, keys and values lie in three
tensors. Qwen2 has biases of queries, keys and values, and no others.

Source: Touvron et al. 2023; Yang et al. 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import HEAD, name_of_activation, with_head
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

NORMS = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
# the activation of the gate in a config.json, and our gated activation
GATES = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu", "gelu_pytorch_tanh": "geglu_tanh"}
ROTARY_TYPES = {"default": "none", "llama3": "llama3"}


def llama_config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of a Llama.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    return decoder_config(settings, bias=require_equal_biases(settings))


def require_equal_biases(settings: Settings) -> bool:
    """Return whether a Llama has biases, and refuse one that has them in some linear maps only."""
    bias = settings.flag("attention_bias", False)
    if settings.flag("mlp_bias", False) != bias:
        raise UserError(
            f"attention_bias and mlp_bias differ in {settings.place}, and npformer supports Llamas with both "
            "biases or with none: use another model"
        )
    return bias


def qwen2_config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of a Qwen2.

    Raises:
        UserError: As llama_config_of, and if layers have a sliding window.
    """
    config = decoder_config(settings, bias=False, qkv_bias=True)
    require_no_windows(settings, config.n_layers)
    return config


def require_no_windows(settings: Settings, n_layers: int) -> None:
    """Refuse a file in which some layers have a sliding window that is in use.

    Args:
        settings: The settings.
        n_layers: The number of layers.
    """
    full = settings.index("max_window_layers", 28)  # the later layers have the window
    types = settings.values.get("layer_types")
    in_use = settings.flag("use_sliding_window", False) and full < n_layers
    if in_use if types is None else types != ["full_attention"] * len(types):
        raise UserError(
            f"{settings.place} asks for attention with a sliding window in some layers, which npformer does "
            "not support in this family: use another model"
        )


def decoder_config(
    settings: Settings,
    kind: Callable[..., GPTConfig] = GPTConfig,
    *,
    defaults: Mapping[str, Any] | None = None,
    **others: Any,
) -> Any:
    """Return our configuration of a Llama or of a family that has the names of its settings.

    Dropout, which acts only in training, is left out.

    Args:
        settings: The settings.
        kind: The class of the configuration.
        defaults: The settings that a file may leave out, if they are not those of Llama.
        others: Further settings of our configuration.
    """
    settings = Settings({**(defaults or {}), **settings.values}, settings.place)
    d_model, n_heads = settings.count("hidden_size"), settings.count("num_attention_heads")
    head_dim = settings.count("head_dim", max(1, d_model // n_heads))
    config = settings.configure(
        kind,
        vocab_size=settings.count("vocab_size"),
        d_model=d_model,
        n_layers=settings.count("num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=settings.count("num_key_value_heads", n_heads),
        head_dim=None if head_dim * n_heads == d_model else head_dim,
        d_ff=settings.count("intermediate_size"),
        context=settings.count("max_position_embeddings", 2048),
        norm="rms",
        norm_eps=settings.number("rms_norm_eps", 1e-6),
        positions="rotary",
        tied=settings.flag("tie_word_embeddings", False),
        **{"activation": settings.choice("hidden_act", GATES, "silu")} | _rotary_settings(settings) | others,
    )
    settings.require_table("max_position_embeddings", config.context, config.d_head // 2)
    return config


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


def settings_of(config: GPTConfig, family: str, name: str, **others: Any) -> dict[str, Any]:
    """Return the content of a config.json, the way back from decoder_config.

    Args:
        config: Our configuration.
        family: The family, such as "llama".
        name: The beginning of the names of its classes, such as "Llama".
        others: Further settings.
    """
    return {
        "model_type": family,
        "architectures": [f"{name}ForCausalLM"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "intermediate_size": config.hidden_width,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.key_heads,
        "head_dim": config.d_head,
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.norm_eps,
        "hidden_act": name_of_activation(config.activation, GATES),
        "tie_word_embeddings": config.tied,
        "rope_parameters": _rope_parameters(config),
        "attention_dropout": config.dropout,
        "bos_token_id": None,  # by default ids of tokens that are like all others in our models
        "eos_token_id": None,
        "pad_token_id": None,
    } | others


def _llama_settings(config: GPTConfig) -> dict[str, Any]:
    return settings_of(config, "llama", "Llama", attention_bias=config.bias, mlp_bias=config.bias)


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
    yield WeightRow("embedding.tokens.weight", (v, d), ("model.embed_tokens.weight",))
    for i in range(config.n_layers):
        yield from _layer_rows(config, f"layers.{i}", f"model.layers.{i}")
        for ours, theirs in norms.items():
            gain = (f"model.layers.{i}.{theirs}.weight",)
            yield WeightRow(f"layers.{i}.{ours}.gain", (d,), gain, added=added)
    yield WeightRow("norm.gain", (d,), ("model.norm.weight",), added=added)
    if config.head and not config.tied:
        yield WeightRow("output.weight", (d, v), (HEAD,), transpose=True)


def _layer_rows(config: GPTConfig, ours: str, theirs: str) -> Iterator[WeightRow]:
    """Yield the rows of the linear maps of a layer, from the prefixes of its names."""
    d, f = config.d_model, config.hidden_width
    queries, keys = config.n_heads * config.d_head, config.key_heads * config.d_head
    parts = (queries, keys, keys)
    # our layer: theirs, the width of its input, the widths of their outputs, and whether it has biases
    linear = {
        "self_attention.query_key_value": (
            ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), d, parts, config.has_qkv_bias
        ),
        "self_attention.output": (("self_attn.o_proj",), queries, (d,), config.bias),
        "feed_forward.gate": (("mlp.gate_proj",), d, (f,), config.bias),
        "feed_forward.value": (("mlp.up_proj",), d, (f,), config.bias),
        "feed_forward.outer": (("mlp.down_proj",), f, (d,), config.bias),
    }  # fmt: skip
    for layer, (tensors, n_in, widths, has_bias) in linear.items():
        names = [f"{theirs}.{tensor}" for tensor in tensors]
        n_out = sum(widths)
        weights, biases = (tuple(f"{name}.{kind}" for name in names) for kind in ("weight", "bias"))
        yield WeightRow(f"{ours}.{layer}.weight", (n_in, n_out), weights, widths, transpose=True)
        if has_bias:
            yield WeightRow(f"{ours}.{layer}.bias", (n_out,), biases, widths)


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


LLAMA = Family("llama", GPT, llama_config_of, _llama_settings, rows, tensor_name, with_head)
_qwen2_settings = partial(settings_of, family="qwen2", name="Qwen2")
QWEN2 = Family("qwen2", GPT, qwen2_config_of, _qwen2_settings, rows, tensor_name, with_head)
