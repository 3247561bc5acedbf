"""Lenses: what a trained model computes between its input and its output.

    logit_lens.py    the prediction that the model would make after each layer
    attribution.py   what each head and each feed-forward network adds to a logit
    patching.py      which activation carries the difference between two texts

All of them run the forward and the backward pass of the model itself, in a copy with taps (taps.py).
`npformer.load(...)` returns models with the methods `lens`, `attribution` and `patch`, which take texts.
"""

from npformer.lenses.attribution import LogitAttribution, attribution_of
from npformer.lenses.logit_lens import Lens, layer_logits, lens_of
from npformer.lenses.patching import Effects, Patching, patching_of
from npformer.lenses.taps import Output, Tap, watchable

__all__ = [
    "Effects",
    "Lens",
    "LogitAttribution",
    "Output",
    "Patching",
    "Tap",
    "attribution_of",
    "layer_logits",
    "lens_of",
    "patching_of",
    "watchable",
]
