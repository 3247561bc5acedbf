"""Decoding: greedy search, beam search and sampling with a trained model, filling of gaps, and BLEU."""

from npformer.generation.batch_decode import translate_ids
from npformer.generation.beam import Branch, Hypothesis, beam_search
from npformer.generation.fill_in import Gap, fill_in, fill_in_table
from npformer.generation.greedy import greedy
from npformer.generation.sampling import choose_tokens, sample_ids, token_probabilities
from npformer.generation.speculative import Speculation, speculative_ids
from npformer.generation.state import CachedState, PrefixState
from npformer.generation.text_stream import TextStream

__all__ = [
    "Branch",
    "CachedState",
    "Gap",
    "Hypothesis",
    "PrefixState",
    "Speculation",
    "TextStream",
    "beam_search",
    "choose_tokens",
    "fill_in",
    "fill_in_table",
    "greedy",
    "sample_ids",
    "speculative_ids",
    "token_probabilities",
    "translate_ids",
]
