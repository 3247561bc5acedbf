"""Decoding: from a trained model to sentences: translations by greedy and by beam search, gaps, endings."""

from npformer.decoding.beam import Branch, Hypothesis, beam_search
from npformer.decoding.continuation import continuations, continue_text
from npformer.decoding.fill_in import Gap, fill_in, fill_in_table
from npformer.decoding.greedy import greedy
from npformer.decoding.many import translate_ids
from npformer.decoding.state import CachedState, PrefixState
from npformer.decoding.translator import Translator

__all__ = [
    "Branch",
    "CachedState",
    "Gap",
    "Hypothesis",
    "PrefixState",
    "Translator",
    "beam_search",
    "continuations",
    "continue_text",
    "fill_in",
    "fill_in_table",
    "greedy",
    "translate_ids",
]
