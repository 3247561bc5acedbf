"""T5, T5 1.1 and Flan-T5: https://huggingface.co/docs/transformers/model_doc/t5.

There are no biases, and no positions but a table of the first layer of each stack, which all its layers read.
The output is the table of tokens, whose input is divided by sqrt(D); or, in T5 1.1 and Flan-T5, a matrix of
its own without this factor. What the layers compute is in npformer/models/t5.py.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import name_of_activation
from npformer.interop.settings_file import Settings
from npformer.models import t5
from npformer.models.t5 import T5Config

SHARED = "shared.weight"
HEAD = "lm_head.weight"
# copies of the table, and a tensor that old files have and no layer reads
SKIPPED = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
)
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "swish",
    "gated-gelu": "geglu_tanh",
    "gated-silu": "swiglu",
}


def config_of(settings: Settings) -> T5Config:
    """Return our configuration of a T5.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    vocab_size, layers = settings.count("vocab_size", 32128), settings.count("num_layers", 6)
    decoder_layers = settings.count("num_decoder_layers", layers)
    d_model, n_heads = settings.count("d_model", 512), settings.count("num_heads", 8)
    d_head = settings.count("d_kv", 64)
    dropout = settings.number("dropout_rate", 0.1)
    pad_id = settings.index("pad_token_id", 0)
    return settings.configure(
        T5Config,
        source_vocab=vocab_size,
        target_vocab=vocab_size,
        d_model=d_model,
        d_ff=settings.count("d_ff", 2048),
        n_heads=n_heads,
        d_head=None if d_head * n_heads == d_model else d_head,
        n_layers=layers,
        decoder_layers=None if decoder_layers == layers else decoder_layers,
        n_buckets=settings.count("relative_attention_num_buckets", 32),
        max_distance=settings.count("relative_attention_max_distance", 128),
        norm_eps=settings.number("layer_norm_epsilon", 1e-6),
        activation=settings.choice("feed_forward_proj", ACTIVATIONS, "relu"),
        # files before version 5 of transformers say it by tie_word_embeddings
        scale_output=settings.flag("scale_decoder_outputs", settings.flag("tie_word_embeddings", True)),
        dropout=dropout,
        attention_dropout=dropout,
        feed_forward_dropout=dropout,
        label_smoothing=0.0,
        pad_id=pad_id,
        start_id=settings.index("decoder_start_token_id", pad_id),
        end_id=settings.index("eos_token_id", 1),
    )


def settings_of(config: T5Config) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "is_encoder_decoder": True,
        "vocab_size": config.source_vocab,
        "d_model": config.d_model,
        "d_kv": config.head_key,
        "d_ff": config.d_ff,
        "num_heads": config.n_heads,
        "num_layers": config.n_layers,
        "num_decoder_layers": config.n_decoder_layers,
        "relative_attention_num_buckets": config.n_buckets,
        "relative_attention_max_distance": config.max_distance,
        "layer_norm_epsilon": config.norm_eps,
        "feed_forward_proj": name_of_activation(config.activation, ACTIVATIONS),
        "tie_word_embeddings": not config.own_output,
        "scale_decoder_outputs": config.scale_output,
        "dropout_rate": config.dropout,
        "pad_token_id": config.pad_id,
        "decoder_start_token_id": config.start_id,
        "eos_token_id": config.end_id,
    }


def rows(config: T5Config) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield WeightRow("source.tokens.weight", (config.source_vocab, config.d_model), (SHARED,))
    for side, n_layers in (("encoder", config.n_layers), ("decoder", config.n_decoder_layers)):
        table = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        shape = (config.n_buckets, config.n_heads)
        yield WeightRow(f"{side}.layers.0.self_attention.table", shape, (table,))
        for index in range(n_layers):
            yield from _layer_rows(config, side, index)
        yield WeightRow(f"{side}.norm.gain", (config.d_model,), (f"{side}.final_layer_norm.weight",))
    if config.own_output:
        ours = "output.output.weight" if config.scale_output else "output.weight"
        yield WeightRow(ours, (config.d_model, config.target_vocab), (HEAD,), transpose=True)


def _layer_rows(config: T5Config, side: str, index: int) -> Iterator[WeightRow]:
    """Yield the rows of a layer, whose sublayers are numbered in a file, each with its norm."""
    ours, theirs = f"{side}.layers.{index}", f"{side}.block.{index}.layer"
    attentions = {"self_attention": "SelfAttention"}
    attentions |= {"cross": "EncDecAttention"} if side == "decoder" else {}
    for number, (name, their_name) in enumerate(attentions.items()):
        yield from _attention_rows(config, f"{ours}.{name}", f"{theirs}.{number}.{their_name}")
    n_attentions, d, f = len(attentions), config.d_model, config.d_ff
    for number in range(n_attentions + 1):
        yield WeightRow(f"{ours}.norm{number + 1}.gain", (d,), (f"{theirs}.{number}.layer_norm.weight",))
    inner, feed_forward = {"inner": "wi"}, f"{theirs}.{n_attentions}.DenseReluDense"
    if config.activation in ("geglu_tanh", "swiglu"):
        inner = {"gate": "wi_0", "value": "wi_1"}
    for name, their_name in inner.items():
        yield _matrix(f"{ours}.feed_forward.{name}", d, f, f"{feed_forward}.{their_name}")
    yield _matrix(f"{ours}.feed_forward.outer", f, d, f"{feed_forward}.wo")


def _attention_rows(config: T5Config, ours: str, theirs: str) -> Iterator[WeightRow]:
    """Yield the rows of an attention, several of whose matrices may be one (config.fused_projections)."""
    names = {"q": "query", "k": "key", "v": "value"}
    groups = ["q", "k", "v"]
    if config.fused_projections:
        groups = ["q", "kv"] if ours.endswith("cross") else ["qkv"]
    width = config.n_heads * config.head_key
    for group in groups:
        layer = f"{ours}.{'_'.join(names[each] for each in group)}"
        yield _matrix(layer, config.d_model, len(group) * width, *(f"{theirs}.{each}" for each in group))
    yield _matrix(f"{ours}.output", width, config.d_model, f"{theirs}.o")


def _matrix(ours: str, n_in: int, n_out: int, *theirs: str) -> WeightRow:
    """Return the row of a linear map without a bias."""
    return WeightRow(
        f"{ours}.weight", (n_in, n_out), tuple(f"{name}.weight" for name in theirs), transpose=True
    )


def tensor_name(name: str, config: T5Config) -> str | None:
    """Return the name of a tensor, or None for a copy of the table of tokens and for what no layer reads."""
    return None if name in SKIPPED else name


def with_head(config: T5Config, settings: Settings, stored: Collection[str]) -> T5Config:
    """Return the configuration with the output that the files have: the table of tokens, or a matrix.

    Args:
        config: The configuration.
        settings: The settings of the config.json.
        stored: The names of the tensors in the files.

    Raises:
        UserError: If the files have no decoder.
    """
    if not any(name.startswith("decoder.") for name in stored):
        raise UserError(
            f"the model of {settings.place} was saved without its decoder (as T5EncoderModel): save it with "
            "T5ForConditionalGeneration"
        )
    return config.replace(own_output=HEAD in stored)


T5 = Family("t5", t5.T5, config_of, settings_of, rows, tensor_name, with_head)
