"""GPT, a decoder-only model, and its configurations."""

from npformer.models.gpt.config import CHOICES, GPT_PRESETS, GPTConfig, LlamaConfig
from npformer.models.gpt.decoding import BlockDecoding
from npformer.models.gpt.model import (
    GPT,
    INITIAL_STD,
    Block,
    BlockCache,
    GPTCache,
    make_attention,
    make_feed_forward,
    make_norm,
    make_rotary,
)

__all__ = [
    "CHOICES",
    "GPT",
    "GPT_PRESETS",
    "INITIAL_STD",
    "Block",
    "BlockCache",
    "BlockDecoding",
    "GPTCache",
    "GPTConfig",
    "LlamaConfig",
    "make_attention",
    "make_feed_forward",
    "make_norm",
    "make_rotary",
]
