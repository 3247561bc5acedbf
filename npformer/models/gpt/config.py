"""The settings of a GPT, their limits, and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from npformer.errors import Registry, UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.functional.rotary import ROTARY_LAYOUTS, Llama3Scaling
from npformer.models.settings import ModelSettings, registry

COUNTS = (
    "vocab_size",
    "d_model",
    "n_layers",
    "n_heads",
    "context",
    "rotary_original_context",
    "n_kv_heads",
    "head_dim",
    "d_ff",
    "window",
)
POSITIVE = ("norm_eps", "rotary_base", "rotary_factor", "rotary_low_factor", "rotary_high_factor")
CHOICES: dict[str, tuple[str, ...]] = {
    "norm": ("layer", "rms"),
    "positions": ("learned", "rotary"),
    "rotary_layout": ROTARY_LAYOUTS,
    "rotary_scaling": ("none", "llama3"),
    "activation": (*ACTIVATIONS, *GATED_ACTIVATIONS),
}


# nanoGPT's settings for the characters of Tiny Shakespeare, on a GPU and on a CPU
_SHAKESPEARE = {"vocab_size": 65, "activation": "gelu", "bias": False}
# the parts of Llama 2 and 3
_LLAMA = {"vocab_size": 65, "norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False}
_LARGE = {"d_model": 384, "n_layers": 6, "n_heads": 6, "context": 256, "dropout": 0.2}

# the settings that differ from the defaults
GPT_PRESETS = registry(
    "preset of GPT",
    {
        "gpt2": {},
        "gpt2-medium": {"d_model": 1024, "n_layers": 24, "n_heads": 16},
        "nanogpt-shakespeare": _SHAKESPEARE | _LARGE,
        "small": _SHAKESPEARE | {"d_model": 128, "n_layers": 4, "n_heads": 4, "context": 64},
        "llama-style": _LLAMA | _LARGE | {"n_kv_heads": 2, "tied": False},
        # for minutes on two cores
        "gpt-shakespeare": _LLAMA
        | {"d_model": 128, "n_layers": 4, "n_heads": 4, "d_ff": 352, "context": 128},
        # for half an hour on two cores
        "gpt-shakespeare-long": _LLAMA
        | {"d_model": 256, "n_layers": 6, "n_heads": 4, "d_ff": 688, "context": 128, "dropout": 0.1},
    },
)


@dataclass(frozen=True)
class GPTConfig(ModelSettings):
    """The settings of a GPT. The defaults are those of GPT-2 with 124 million parameters.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    reads: ClassVar[str] = "text"
    named: ClassVar[Registry[dict[str, Any]]] = GPT_PRESETS
    later: ClassVar[Mapping[str, Any]] = {
        "head": True,
        "head_dim": None,
        "rotary_scaling": "none",
        "rotary_factor": 8.0,
        "rotary_low_factor": 1.0,
        "rotary_high_factor": 4.0,
        "rotary_original_context": 8192,
    }

    vocab_size: int = 50257
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    n_kv_heads: int | None = None  # heads of keys and values, shared by the query heads; None means n_heads
    head_dim: int | None = None  # the width of a head; None means d_model / n_heads
    d_ff: int | None = None  # None means 4 d_model, or 8/3 d_model with a gated activation: as many weights
    context: int = 1024  # the largest number of tokens that the model reads

    norm: str = "layer"  # "layer" or "rms"
    norm_eps: float = 1e-5
    positions: str = "learned"  # "learned" or "rotary"
    rotary_base: float = 10000.0
    rotary_layout: str = "halves"  # "halves" or "interleaved"
    rotary_scaling: str = "none"  # "llama3" reads longer texts, with the four settings of Llama3Scaling
    rotary_factor: float = 8.0
    rotary_low_factor: float = 1.0
    rotary_high_factor: float = 4.0
    rotary_original_context: int = 8192
    activation: str = "gelu_tanh"  # one of ACTIVATIONS or GATED_ACTIVATIONS
    window: int | None = None  # a token attends to itself and the window - 1 tokens before it; None: to all
    bias: bool = True  # biases in linear maps and layer norms
    qkv_bias: bool | None = None  # biases of queries, keys and values; None means bias. Qwen2 has no others
    tied: bool = True  # output and embedding share a weight
    head: bool = True  # False: the output is that of the last norm, and there are no logits

    dropout: float = 0.0  # of embeddings, attention weights and the outputs of sublayers
    label_smoothing: float = 0.0
    pad_id: int | None = None  # the id of padding after the end, which has no loss; None without padding

    def __post_init__(self) -> None:
        shares = ("dropout", "label_smoothing")
        self.require(choices=CHOICES, counts=COUNTS, indices=("pad_id",), shares=shares, positive=POSITIVE)
        if self.qkv_bias is not None and not isinstance(self.qkv_bias, bool):
            raise UserError(f"qkv_bias is {self.qkv_bias!r}: it must be True, False or None")
        self._require_heads()

    def _require_heads(self) -> None:
        """Check that the width can be divided among the heads, and the query heads among the key heads."""
        if self.head_dim is None and self.d_model % self.n_heads:
            raise UserError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: change one of them, or "
                "give head_dim"
            )
        if self.n_heads % self.key_heads:
            raise UserError(
                f"n_heads {self.n_heads} is not divisible by n_kv_heads {self.key_heads}: change one of them"
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise UserError(
                f"rotary positions rotate pairs of numbers, and a head is {self.d_head} wide: change d_model "
                "or n_heads"
            )
        if not self.rotary_low_factor < self.rotary_high_factor:
            raise UserError(
                f"rotary_low_factor is {self.rotary_low_factor}: it must be below rotary_high_factor, "
                f"{self.rotary_high_factor}"
            )

    @property
    def d_head(self) -> int:
        """The width K of a head."""
        return self.d_model // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def scaling(self) -> Llama3Scaling | None:
        """The change of the angles of rotary positions, or None."""
        if self.rotary_scaling == "none":
            return None
        return Llama3Scaling(
            self.rotary_factor,
            self.rotary_low_factor,
            self.rotary_high_factor,
            self.rotary_original_context,
        )

    @property
    def key_heads(self) -> int:
        """The number G of heads of keys and values."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def cached_numbers(self) -> int:
        """The numbers that the KV cache of a layer keeps for each token: keys and values of G heads."""
        return 2 * self.key_heads * self.d_head

    @property
    def has_qkv_bias(self) -> bool:
        """True if queries, keys and values have biases."""
        return self.bias if self.qkv_bias is None else self.qkv_bias

    @property
    def is_gated(self) -> bool:
        """True if the feed-forward network has a gated activation."""
        return self.activation in GATED_ACTIVATIONS

    @property
    def hidden_width(self) -> int:
        """The width F of the hidden layer of the feed-forward network."""
        if self.d_ff is not None:
            return self.d_ff
        return 8 * self.d_model // 3 if self.is_gated else 4 * self.d_model

    # the names that other models have for the same settings

    @property
    def max_length(self) -> int:
        """The largest number of tokens that the model reads."""
        return self.context

    @property
    def target_vocab(self) -> int:
        """The number of tokens among which the model chooses the next one."""
        return self.vocab_size

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it: here, their number."""
        return self.count_parameters()

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        d, f, bias = self.d_model, self.hidden_width, int(self.bias)
        queries, keys = self.n_heads * self.d_head, self.key_heads * self.d_head
        norm = d * (1 + (bias if self.norm == "layer" else 0))
        attention = 2 * d * (queries + keys) + bias * d + int(self.has_qkv_bias) * (queries + 2 * keys)
        n_inner = 2 if self.is_gated else 1  # linear maps from D to F
        feed_forward = (n_inner + 1) * d * f + bias * (n_inner * f + d)
        tables = self.vocab_size * d * (1 if self.tied or not self.head else 2)
        positions = self.context * d if self.positions == "learned" else 0
        return tables + positions + self.n_layers * (attention + feed_forward + 2 * norm) + norm


@dataclass(frozen=True)
class LlamaConfig(GPTConfig):
    """The settings of a GPT with the parts of Llama: the defaults of the families that are nearly a Llama."""

    norm: str = "rms"
    positions: str = "rotary"
    activation: str = "swiglu"
    bias: bool = False
