"""F29, F30 and F52: the noun of *it* and the meaning of *bank*, in the heads that find them most often."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.generation.evaluation import HeadAccuracy
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.learn.figures.trained_heads import (
    ADJECTIVE,
    MEANING,
    NOUN,
    PLACES,
    Question,
    best_head,
    forward_pair,
    head_weights,
    measure,
    measured_parts,
    share_of,
    unknown_words,
)
from npformer.plots import Figure, word_lines
from npformer.plots.composition import beside
from npformer.pretrained.attention import ForwardPass, name_of_head

ANIMAL = "the animal didn't cross the street because it was too tired"
BANK = "i arrived at the bank after crossing the river"

# To write one of these, the decoder must have decided the meaning of *it* or *bank*.
FRENCH = {"it": ("il", "elle"), "bank": ("rive", "banque")}
COLOURS = ("orange", "green")

# A kind of attention is shown if its best head attends to a target in at least this share of the held-out
# sentences. Two nouns come before *it*, so a head that always chose the same of them would reach about half.
RESOLVES = 0.5


NAMES = {"encoder": "encoder self-attention", "cross": "encoder-decoder attention"}
SIDES = {"encoder": "encoder", "cross": "decoder"}


class View(NamedTuple):
    """The heads of one kind of attention that are drawn in one picture."""

    where: str  # "encoder" or "cross"
    heads: list[HeadAccuracy]


@dataclass(frozen=True)
class Choice:
    """The settings of F29, F30 and F52: what is drawn.

    Attributes:
        sentence: An English sentence.
        where: "encoder" for the encoder's heads at *it* or *bank*, "cross" for the decoder's heads at the
            step that writes its French. By default both if both attend to a target in most sentences, or the
            better.
        layer, head, word: The layer and the number of another head, and another query.
    """

    sentence: str
    where: str | None = None
    layer: int | None = None
    head: int | None = None
    word: str | None = None


@figure("F29", "“it” attending, in one head", "datawhale", "TR", "15.2", Choice, sentence=ANIMAL)
def one_head(studio: Studio, choice: Choice) -> Drawing:
    """Draw lines from *it* to the words of the sentence, in the head that attends to its noun most often."""
    forward = forward_pair(studio, choice.sentence)
    views = _views(studio, forward, NOUN, choice)
    shares = _shares(studio, NOUN, views)
    caption = (
        f" In {measured_parts('it')}, the largest weight of this head is on the noun that the pronoun stands "
        f"for in {shares}{_elsewhere(studio, views)}."
    )
    return _drawing(studio, forward, "it", choice, views, caption)


@figure("F30", "“it” attending, in two heads", "datawhale", "TR", "15.2", Choice, sentence=ANIMAL)
def two_heads(studio: Studio, choice: Choice) -> Drawing:
    """Draw the lines of two heads: orange finds the noun most often, green the adjective."""
    forward = forward_pair(studio, choice.sentence)
    views = []
    for view in _views(studio, forward, NOUN, choice):
        (noun,) = view.heads
        views.append(View(view.where, [noun, best_head(studio, ADJECTIVE, view.where, but=noun)]))
    nouns = _shares(studio, NOUN, views)
    adjectives = _shares(studio, ADJECTIVE, views, but=NOUN)
    caption = (
        f" In {measured_parts('it')}, the largest weight of the orange head is on the noun in {nouns}, and "
        f"that of the green head on the adjective that decides in {adjectives}."
    )
    return _drawing(studio, forward, "it", choice, views, caption)


@figure("F52", "“bank” and “river”", "zhihu", "TR", "15.2", Choice, sentence=BANK)
def bank_and_river(studio: Studio, choice: Choice) -> Drawing:
    """Draw lines from *bank* to the words that decide its meaning."""
    forward = forward_pair(studio, choice.sentence)
    views = _views(studio, forward, MEANING, choice)
    shares = _shares(studio, MEANING, views)
    caption = (
        f" In {measured_parts('bank')}, the largest weight of this head is on a word that decides the "
        f"meaning, such as river or money, in {shares}."
    )
    return _drawing(studio, forward, "bank", choice, views, caption)


def _views(studio: Studio, forward: ForwardPass, question: Question, choice: Choice) -> list[View]:
    """Return what is drawn: the best head, or the one that the caller asked for, of each kind of attention.

    Without a wish of the caller these are the kinds whose best head attends to a target in most sentences,
    the encoder's first, or the better one if there is none.
    """
    _, where, layer, head, word = dataclasses.astuple(choice)
    best = best_head(studio, question, where)
    if layer is not None or head is not None:
        layer, head = best.layer if layer is None else layer, best.head if head is None else head
        return [View(best.where, [share_of(studio, question, best.where, layer, head)])]
    views = [View(place, [best_head(studio, question, place)]) for place in PLACES]
    queries = {"encoder": forward.source, "cross": forward.predicted}
    shown = [
        view
        for view in views
        if where is None and view.heads[0].share >= RESOLVES and (word is None or word in queries[view.where])
    ]
    return shown or [View(best.where, [best])]


def _shares(studio: Studio, question: Question, views: Sequence[View], *, but: Question | None = None) -> str:
    """Return the shares of sentences in which the head of each view attends to a target, for a caption.

    For the second head of each view, `but` is the question of the first.
    """
    texts = []
    for view in views:
        head = view.heads[0 if but is None else 1]
        text = " and ".join(map(str, measure(studio, question, head, but=but)))
        texts.append(text if len(views) == 1 else f"{text} in the {SIDES[view.where]}")
    return " and in ".join(texts)


def _elsewhere(studio: Studio, views: Sequence[View]) -> str:
    """Return the end of a sentence about the best head of the encoder, or "" if the encoder is shown."""
    if any(view.where == "encoder" for view in views):
        return ""
    best = View("encoder", [best_head(studio, NOUN, "encoder")])
    return f"; at “it” itself, that of the encoder's best head is in {_shares(studio, NOUN, [best])}"


def _drawing(
    studio: Studio, forward: ForwardPass, family: str, choice: Choice, views: Sequence[View], caption: str
) -> Drawing:
    """Draw a picture for each view, side by side, and describe it before the caption about the heads."""
    draws, names, descriptions = zip(
        *(_lines(forward, family, choice.word, view) for view in views), strict=True
    )
    picture = draws[0](title=names[0]) if len(views) == 1 else beside(draws, names=names)
    caption = " ".join(descriptions) + caption
    count = len(studio.translators)
    if count > 1:
        caption += (
            f" In brackets: mean and range of the best heads of {count} trainings with different seeds."
        )
    return Drawing(picture, caption + unknown_words(studio.translator, choice.sentence))


def _lines(
    forward: ForwardPass, family: str, word: str | None, view: View
) -> tuple[Callable[..., Figure], str, str]:
    """Return the function that draws a view, its name, and the sentence that describes it."""
    weights_of = [head_weights(forward, each.where, each.layer, each.head) for each in view.heads]
    queries, keys = weights_of[0].queries, weights_of[0].keys
    query = _query_of(queries, family, view.where, word)
    weights = np.stack([each.weights for each in weights_of])  # (N, T, S)
    writing = view.where == "cross"
    label = f"“{queries[query]}”" + (f", for “{family}”" if writing and word is None else "")
    draw = partial(
        word_lines,
        weights,
        queries,
        keys,
        query=query,
        heads=range(len(view.heads)),  # always the first two colours, which are those of the documents
        names=[name_of_head(each.layer, each.head) for each in view.heads],
    )
    beginning = f"Where the decoder writes {label}" if writing else f"Where the encoder reads {label}"
    attended: list[str] = []
    for colour, row in zip(COLOURS, weights[:, query], strict=False):
        which = f"the {colour} head" if len(view.heads) > 1 else "this head"
        verb = "" if attended else " attends most"
        best = int(row.argmax())
        attended.append(f"{which}{verb} to “{keys[best]}” ({row[best]:.2f})")
    name = f"{NAMES[view.where]}, {'writing' if writing else 'reading'} {label}"
    return draw, name, f"{beginning}, {' and '.join(attended)}."


def _query_of(words: Sequence[str], family: str, where: str, word: str | None) -> int:
    """Return the position of the query: the caller's word, *it* or *bank*, or the last one in French."""
    candidates = (word,) if word is not None else (family,) if where == "encoder" else FRENCH[family]
    places = [index for index, each in enumerate(words) if each in candidates]
    if not places:
        raise UserError(
            f"there is no {' or '.join(candidates)} in {' '.join(words)!r}: give word=, one of its words"
        )
    return places[0] if word is not None else places[-1]
