"""Decoding: greedy search, beam search and sampling with a trained model, translation of text, and BLEU."""

from npformer.generation.batch_decode import translate_ids
from npformer.generation.beam import Branch, Hypothesis, beam_search
from npformer.generation.continuation import continuations, continue_text
from npformer.generation.fill_in import Gap, fill_in, fill_in_table
from npformer.generation.greedy import greedy
from npformer.generation.state import CachedState, PrefixState
from npformer.generation.translator import Translator

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
