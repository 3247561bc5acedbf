"""All bugs of the zoo. A module declares a bug as BUG; its name and its number come from this list."""

from dataclasses import replace
from importlib import import_module

NAMES = (
    "linear", "layer-norm", "embedding", "cross-entropy", "dropout", "adam", "tied-weights", "shared-layer",
    "split-heads", "attention", "language-model", "positions", "padding", "decoder", "checkpointing",
    "accumulation", "precision", "beam-search", "recurrent", "local-attention", "hard-attention",
    "latent-attention", "relative", "rotary-values", "rotary-sign", "rotary-decoding", "window",
    "weight-decay",
)  # fmt: skip

ALL = tuple(
    replace(import_module(f"{__name__}.{name.replace('-', '_')}").BUG, number=number, name=name)
    for number, name in enumerate(NAMES, 1)
)
