"""Decoding: from a trained model to translations, by greedy and by beam search."""

from npformer.decoding.beam import Branch, Hypothesis, beam_search
from npformer.decoding.greedy import greedy
from npformer.decoding.state import CachedState, PrefixState
from npformer.decoding.translator import Translator

__all__ = [
    "Branch",
    "CachedState",
    "Hypothesis",
    "PrefixState",
    "Translator",
    "beam_search",
    "greedy",
]
