"""GPT, a decoder-only model, and its configurations."""

from npformer.models.gpt.config import CHOICES, GPT_PRESETS, GPTConfig
from npformer.models.gpt.model import GPT, INITIAL_STD, Block, GPTCache

__all__ = ["CHOICES", "GPT", "GPT_PRESETS", "INITIAL_STD", "Block", "GPTCache", "GPTConfig"]
