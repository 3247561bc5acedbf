"""Decoding: greedy search, beam search and sampling with a trained model, translation of text, and BLEU."""

from npformer.generation.batch_decode import translate_ids
from npformer.generation.beam import Branch, Hypothesis, beam_search
from npformer.generation.fill_in import Gap, GapFiller, fill_in, fill_in_table
from npformer.generation.greedy import greedy
from npformer.generation.sampling import choose_tokens, sample_ids, token_probabilities
from npformer.generation.state import CachedState, PrefixState
from npformer.generation.text_generator import TextGenerator
from npformer.generation.text_stream import TextStream
from npformer.generation.translator import SentenceTranslator, Translator

__all__ = [
    "Branch",
    "CachedState",
    "Gap",
    "GapFiller",
    "Hypothesis",
    "PrefixState",
    "SentenceTranslator",
    "TextGenerator",
    "TextStream",
    "Translator",
    "beam_search",
    "choose_tokens",
    "fill_in",
    "fill_in_table",
    "greedy",
    "sample_ids",
    "token_probabilities",
    "translate_ids",
]
