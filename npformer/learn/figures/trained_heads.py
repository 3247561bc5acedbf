"""Measurements of the heads on held-out sentences, by which figures choose the heads that they show."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from npformer.data.corpus import BuiltinCorpus, Pair, Reference, builtin_corpus
from npformer.data.loader import make_batch
from npformer.errors import UserError
from npformer.generation.evaluation import HeadAccuracy
from npformer.learn.figures.studio import Studio
from npformer.models.registry import attention_layers
from npformer.pretrained import Translator
from npformer.pretrained.attention import ForwardPass
from npformer.training.if_then import TrainedReader

AT_ONCE = 64  # sentences in a forward pass
PLACES = ("encoder", "cross")  # the attention in which the heads are measured

# The parts of the corpus in which heads are measured, and the words in captions after their number of
# sentences. In each training the best head is chosen on the first part, and measured on the others too.
PARTS = {"new_words": "such sentences with new pairs of words", "new_frames": "in new frames"}

FIRST, *_ = PARTS

HeadKey = tuple[str, int, int]  # "encoder" or "cross", layer, head


class Question(NamedTuple):
    """A question to heads: in each sentence of a family, they should find one of the targets."""

    family: str  # "it" or "bank"
    targets: Callable[[Reference], tuple[int, ...]]  # returns the positions of the targets


# the noun that *it* refers to, and the words that decide: tired for *it*, river for *bank*
NOUN = Question("it", lambda it: () if it.antecedent is None else (it.antecedent,))
ADJECTIVE, MEANING = (Question(family, lambda of: of.deciders) for family in ("it", "bank"))


class Measurement(NamedTuple):
    """The share of the sentences of one part in which a head's largest weight is on a target."""

    share: float  # of the head that is drawn
    shares: tuple[float, ...]  # of the best head of each training

    def __str__(self) -> str:
        if len(self.shares) == 1:
            return f"{self.share:.1%}"
        low, mean, high = min(self.shares), np.mean(self.shares), max(self.shares)
        return f"{self.share:.1%} ({mean:.1%}, {low:.1%} to {high:.1%})"


def measured_parts(family: str) -> str:
    """Return the numbers of sentences in which the heads are measured, for a caption."""
    return " and ".join(f"{len(_pairs(part, family))} {name}" for part, name in PARTS.items())


def measure(
    studio: Studio, question: Question, head: HeadAccuracy, *, but: Question | None = None
) -> list[Measurement]:
    """Measure a head in every part of the corpus, and beside it the best head of each training.

    Args:
        studio, question: The source of the trained models, and what the head should find.
        head: The head that is drawn. Its attention, "encoder" or "cross", is that of the other trainings too.
        but: Leave out the head of each training that is the best for this other question.
    """
    drawn = (head.where, head.layer, head.head)
    found = []
    for part in PARTS:
        shares = []
        for number in range(len(studio.translators)):
            taken = None
            if but is not None:
                taken = _best(_head_shares(studio, but, number=number), head.where)
            chosen = _best(_head_shares(studio, question, number=number), head.where, taken)
            shares.append(_head_shares(studio, question, part, number=number)[chosen])
        own = _head_shares(studio, question, part)[drawn]
        found.append(Measurement(own, tuple(shares)))
    return found


def best_head(
    studio: Studio, question: Question, where: str | None = None, *, but: HeadAccuracy | None = None
) -> HeadAccuracy:
    """Return the head of the drawn model whose largest weight, at *it* or *bank*, is most often on a target.

    The share is measured on the held-out sentences of the family, as in generation.evaluation.

    Args:
        studio, question: The source of the trained model, and what the head should find.
        where: "encoder", measured at the ambiguous word, or "cross", measured where its French is written;
            both by default.
        but: A head to leave out, or None.

    Raises:
        UserError: If `where` is something else.
    """
    if where not in (None, *PLACES):
        raise UserError(f"where is {where!r}: choose encoder or cross")
    shares = _head_shares(studio, question)
    place = _best(shares, where, None if but is None else (but.where, but.layer, but.head))
    return HeadAccuracy(*place, shares[place], len(_pairs(FIRST, question.family)))


def _best(shares: dict[HeadKey, float], where: str | None, taken: HeadKey | None = None) -> HeadKey:
    """Return the head with the largest share, the first of equal ones."""
    some = {key: share for key, share in shares.items() if where in (None, key[0]) and key != taken}
    return max(some, key=lambda key: some[key])


def share_of(studio: Studio, question: Question, where: str, layer: int, head: int) -> HeadAccuracy:
    """Return one head with the share of sentences in which its largest weight is on a target.

    Args:
        studio, question: The source of the trained model, and what the head should find.
        where, layer, head: "encoder" or "cross", the layer, and the number of the head.

    Raises:
        UserError: If the head does not exist.
    """
    shares = _head_shares(studio, question)
    check_number("layer", layer, 1 + max(p[1] for p in shares if p[0] == where))
    check_number("head", head, 1 + max(p[2] for p in shares))
    share = shares[where, layer, head]
    return HeadAccuracy(where, layer, head, share, len(_pairs(FIRST, question.family)))


def _head_shares(
    studio: Studio, question: Question, part: str = FIRST, *, number: int = 0
) -> dict[HeadKey, float]:
    """Return for every head the share of sentences in which its largest weight is on a target.

    Training 0, with the drawn model, has `number` 0.
    """
    pairs = _pairs(part, question.family)
    known = ("attended", question.family, part, number)
    if known not in studio.memo:
        translator = studio.translators[number] if number else studio.translator
        studio.memo[known] = _strongest(translator, pairs)
    attended: dict[HeadKey, np.ndarray] = studio.memo[known]
    target_words = [question.targets(pair.reference) for pair in pairs if pair.reference is not None]
    return {
        place: float(np.mean([key in words for key, words in zip(keys, target_words, strict=True)]))
        for place, keys in attended.items()
    }


@cache
def _corpus() -> BuiltinCorpus:
    return builtin_corpus()  # takes a second


def _pairs(part: str, family: str) -> list[Pair]:
    """Return the sentences of a family in a part of the corpus."""
    return [pair for pair in getattr(_corpus(), part) if pair.family == family]


def _strongest(translator: Translator, pairs: Sequence[Pair]) -> dict[HeadKey, np.ndarray]:
    """Return for every head the English word with its largest weight in each sentence, (N,)."""
    keys: dict[HeadKey, list[np.ndarray]] = {}
    source, target = translator.codec
    for start in range(0, len(pairs), AT_ONCE):
        some = pairs[start : start + AT_ONCE]
        batch = make_batch([(source.encode(pair.english), target.encode(pair.french)) for pair in some])
        _, cache = translator.model.forward(batch.source, batch.target_in)
        for where, name in (("encoder", "word"), ("cross", "answer")):
            queries = [getattr(pair.reference, name) for pair in some]
            for number, layer in enumerate(attention_layers(cache, where)):
                weights = layer[np.arange(len(some)), :, queries]  # (B, H, S)
                for head, best in enumerate(weights.argmax(-1).T):
                    keys.setdefault((where, number, head), []).append(best)
    return {place: np.concatenate(parts) for place, parts in keys.items()}


class HeadWeights(NamedTuple):
    """The weights of one head in one sentence."""

    weights: np.ndarray  # (T, S)
    queries: list[str]
    keys: list[str]


def head_weights(forward: ForwardPass, where: str, layer: int, head: int) -> HeadWeights:
    """Return the weights of one head in a sentence.

    The queries of "cross" are labelled with the written word, those of "decoder" with the word read.

    Args:
        forward: The forward pass.
        where: "encoder", "decoder" (its self-attention), or "cross".
        layer, head: The layer, and the number of the head.

    Raises:
        UserError: If the layer or the head does not exist.
    """
    layers = attention_layers(forward.cache, where)
    check_number("layer", layer, len(layers))
    weights = layers[layer][0]  # (H, T, S)
    check_number("head", head, len(weights))
    rows = {"encoder": forward.source, "decoder": forward.target, "cross": forward.predicted}[where]
    return HeadWeights(weights[head], rows, forward.target if where == "decoder" else forward.source)


def check_number(name: str, number: int, count: int) -> None:
    """Check that a layer or head exists.

    Args:
        name, number: "layer" or "head", and its number.
        count: How many layers or heads there are.

    Raises:
        UserError: If it does not.
    """
    if not 0 <= number < count:
        raise UserError(f"{name} is {number}: there are {name}s 0 .. {count - 1}")


def forward_pair(studio: Studio, sentence: str) -> ForwardPass:
    """Run the model on a sentence with its translation: the corpus's for a held-out one, else its own."""
    held_out = [pair for part in PARTS for pair in getattr(_corpus(), part)]
    known = [pair.french for pair in held_out if pair.english == sentence]
    return studio.forward_pass(sentence, known[0] if known else None)


def unknown_words(translator: Translator | TrainedReader, sentence: str) -> str:
    """Return a sentence for the caption that names the words unknown to the model, or an empty text."""
    unknown = translator.unknown_words(sentence)
    if not unknown:
        return ""
    return f" The model does not know {', '.join(map(repr, unknown))} and reads <UNK> instead."
