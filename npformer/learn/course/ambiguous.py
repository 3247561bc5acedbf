"""The sentences with an ambiguous word in which the lessons of chapter 15 examine the trained translator."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from npformer.data import make_batch
from npformer.data.corpus import Pair, Reference, builtin_corpus
from npformer.data.corpus.ambiguous_it import NUMBERS
from npformer.data.corpus.lexicon import ANIMALS, GROUNDS, MACHINES
from npformer.data.corpus.pairs import Family
from npformer.data.loader import Batch
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.pretrained import Translator

HeadKey = tuple[str, int, int]  # "encoder", "decoder" or "cross"; the layer; the head

TOKEN_KINDS = ("antecedent", "other noun", "adjective", "it", "</S>", "other")


class AmbiguousSentences(NamedTuple):
    """Sentences with an ambiguous word as one batch, and the positions that the lessons ask about.

    Args:
        pairs: The sentences and their translations, B of them.
        batch: Their ids, with the shapes (B, S) and (B, T).
        word: The position of the ambiguous word in the source, (B,).
        answer: The position in the target that predicts its translation, (B,).
        right: The id of the right translation of the word, (B,).
        wrong: The id of the wrong one, (B,).
    """

    pairs: list[Pair]
    batch: Batch
    word: np.ndarray
    answer: np.ndarray
    right: np.ndarray
    wrong: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The numbers 0 to B − 1, which select one row of each sentence."""
        return np.arange(len(self.pairs))

    def logit_differences(self, logits: np.ndarray) -> np.ndarray:
        """Return logit(right) − logit(wrong) of each sentence. Shapes: (B, T, V) → (B,)."""
        return logits[self.rows, self.answer, self.right] - logits[self.rows, self.answer, self.wrong]


def ambiguous_sentences(translator: Translator, family: Family, most: int) -> AmbiguousSentences:
    """Return held-out sentences with *it* or *bank*.

    Sentences with *it* are like the example of the source documents: see `is_like_the_example`.

    Args:
        translator: The translator, for its codecs.
        family: "it" or "bank".
        most: The largest number of sentences.
    """
    held_out = [pair for pair in builtin_corpus().new_words if pair.family == family]
    alike = [pair for pair in held_out if family == "bank" or is_like_the_example(pair)]
    return as_batch(translator, alike[:most])


def as_batch(translator: Translator, pairs: Sequence[Pair]) -> AmbiguousSentences:
    """Return sentence pairs with an ambiguous word as one batch."""
    source, target = translator.codec
    references = [reference_of(pair) for pair in pairs]
    return AmbiguousSentences(
        list(pairs),
        make_batch([(source.encode(pair.english), target.encode(pair.french)) for pair in pairs]),
        np.array([reference.word for reference in references]),
        np.array([reference.answer for reference in references]),
        np.array([target.encode(reference.right)[0] for reference in references]),
        np.array([target.encode(reference.wrong)[0] for reference in references]),
    )


def is_like_the_example(pair: Pair) -> bool:
    """Return True if the place is two words before *it*, and both nouns are singular."""
    words, position = pair.english.split(), reference_of(pair).word
    singular = not set(NUMBERS) & set(pair.constructions)
    return singular and position > 2 and words[position - 2] in GROUNDS


def reference_of(pair: Pair) -> Reference:
    """Return the reference of a pair with an ambiguous word."""
    assert pair.reference is not None
    return pair.reference


def kinds_of_tokens(sentences: AmbiguousSentences) -> np.ndarray:
    """Return the kind of each source token as an index into TOKEN_KINDS, (B, S), for sentences with *it*."""
    kinds = np.full(sentences.batch.source.shape, TOKEN_KINDS.index("other"))
    for row, pair in enumerate(sentences.pairs):
        words, reference = pair.english.split(), reference_of(pair)
        moving = next(i for i, word in enumerate(words) if word in ANIMALS or word in MACHINES)
        nouns = {moving, reference.word - 2}  # the place is two words before it
        kinds[row, list(nouns - {reference.antecedent})] = TOKEN_KINDS.index("other noun")
        kinds[row, reference.antecedent] = TOKEN_KINDS.index("antecedent")
        kinds[row, list(reference.deciders)] = TOKEN_KINDS.index("adjective")
        kinds[row, reference.word] = TOKEN_KINDS.index("it")
        kinds[row, len(words)] = TOKEN_KINDS.index("</S>")
    return kinds


def attention_parts(tree: Any) -> dict[str, list[Any]]:
    """Return the attention layers of a Transformer, or their caches, by kind and in the order of the layers.

    Args:
        tree: The Transformer or its cache.
    """
    encoder, decoder = tree.encoder.layers, tree.decoder.layers
    return {
        "encoder": [layer.self_attention for layer in encoder],
        "decoder": [layer.self_attention for layer in decoder],
        "cross": [layer.cross for layer in decoder],
    }


def weights_of_queries(sentences: AmbiguousSentences, cache: Any) -> dict[HeadKey, np.ndarray]:
    """Return, for each head, the attention weights (B, S) of the query that the lessons ask about.

    In the encoder this is the query of the ambiguous word. In cross-attention it is the query of the position
    that predicts its translation.

    Args:
        sentences: The sentences.
        cache: The cache of the Transformer's forward pass over their batch.
    """
    parts, found = attention_parts(cache), dict[HeadKey, np.ndarray]()
    for where, queries in (("encoder", sentences.word), ("cross", sentences.answer)):
        for layer, part in enumerate(parts[where]):
            weights = part.attention.weights  # (B, H, T, S)
            for head in range(weights.shape[1]):
                found[where, layer, head] = weights[sentences.rows, head, queries]
    return found


@contextmanager
def ablated(attention: MultiHeadAttention, *heads: int) -> Iterator[None]:
    """Remove heads of an attention layer for a while: their blocks of rows of W^O are 0.

    Args:
        attention: The layer.
        *heads: The numbers of the heads.
    """
    assert attention.output is not None
    w_output = attention.output.weight.value  # (H·K, D)
    original = w_output.copy()
    blocks = w_output.reshape(attention.n_heads, -1, w_output.shape[-1])  # (H, K, D), the same memory
    try:
        blocks[list(heads)] = 0
        yield
    finally:
        w_output[...] = original
