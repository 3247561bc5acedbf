"""F29, F30 and F52: the noun of *it* and the meaning of *bank*, in the heads that find them most often."""

from collections.abc import Sequence

import numpy as np

from npformer.errors import UserError
from npformer.generation.evaluation import HeadAccuracy
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.learn.figures.trained_heads import (
    Targets,
    antecedent,
    best_head,
    deciders,
    forward_pair,
    head_weights,
    share_of,
    unknown_words,
)
from npformer.plots import Figure, word_lines
from npformer.pretrained.attention import ForwardPass

ANIMAL = "the animal didn't cross the street because it was too tired"
BANK = "i arrived at the bank after crossing the river"

# To write one of these, the decoder must have decided the meaning of *it* or *bank*.
FRENCH = {"it": ("il", "elle"), "bank": ("rive", "banque")}
COLOURS = ("orange", "green")


@figure("F29", "“it” attending, in one head", source="datawhale", data="TR")
def one_head(
    studio: Studio,
    *,
    sentence: str = ANIMAL,
    where: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
) -> Drawing:
    """Draw lines from *it* to the words of the sentence, in the head that attends to its noun most often.

    Args:
        studio: The source of the trained model.
        sentence: An English sentence.
        where: "encoder" for the encoder's heads at *it*, "cross" for the decoder's heads at the step that
            writes il or elle. By default the better of the two.
        layer: The layer of another head.
        head: The number of another head.
        word: Another query.

    Returns:
        The figure with its caption.
    """
    best = best_head(studio, "it", antecedent, where)
    best = _other(studio, "it", antecedent, best, layer, head)
    forward = forward_pair(studio, sentence)
    picture, description = _lines(forward, "it", word, [best])
    caption = (
        f"{description} Over all {best.sentences} held-out sentences with “it”, the largest weight of this "
        f"head (layer {best.layer}, head {best.head}) is on the noun that “it” refers to in "
        f"{best.share:.1%}{_elsewhere(studio, best)}."
    )
    return Drawing(picture, caption + unknown_words(studio.translator, sentence))


@figure("F30", "“it” attending, in two heads", source="datawhale", data="TR")
def two_heads(
    studio: Studio, *, sentence: str = ANIMAL, where: str | None = None, word: str | None = None
) -> Drawing:
    """Draw the lines of two heads: orange finds the noun most often, green the adjective.

    Args:
        studio: The source of the trained model.
        sentence: An English sentence.
        where: "encoder" or "cross", as for F29. By default the better of the two.
        word: Another query.

    Returns:
        The figure with its caption.
    """
    noun = best_head(studio, "it", antecedent, where)
    adjective = best_head(studio, "it", deciders, noun.where, but=noun)
    forward = forward_pair(studio, sentence)
    picture, description = _lines(forward, "it", word, [noun, adjective])
    caption = (
        f"{description} Over all {noun.sentences} held-out sentences with “it”, the largest weight of the "
        f"orange head (layer {noun.layer}, head {noun.head}) is on the noun in {noun.share:.1%}, that of the "
        f"green head (layer {adjective.layer}, head {adjective.head}) on the adjective that decides in "
        f"{adjective.share:.1%}."
    )
    return Drawing(picture, caption + unknown_words(studio.translator, sentence))


@figure("F52", "“bank” and “river”", source="zhihu", data="TR")
def bank_and_river(
    studio: Studio,
    *,
    sentence: str = BANK,
    where: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
) -> Drawing:
    """Draw lines from *bank* to the words that decide its meaning.

    Args:
        studio: The source of the trained model.
        sentence: An English sentence.
        where: "encoder" or "cross", as for F29. By default the better of the two.
        layer: The layer of another head.
        head: The number of another head.
        word: Another query.

    Returns:
        The figure with its caption.
    """
    best = best_head(studio, "bank", deciders, where)
    best = _other(studio, "bank", deciders, best, layer, head)
    forward = forward_pair(studio, sentence)
    picture, description = _lines(forward, "bank", word, [best])
    caption = (
        f"{description} Over all {best.sentences} held-out sentences with “bank”, the largest weight of this "
        f"head (layer {best.layer}, head {best.head}) is on a word that decides the meaning, such as river "
        f"or money, in {best.share:.1%}."
    )
    return Drawing(picture, caption + unknown_words(studio.translator, sentence))


def _other(
    studio: Studio, family: str, targets: Targets, best: HeadAccuracy, layer: int | None, head: int | None
) -> HeadAccuracy:
    """Return the head that the caller asked for with its share, or else the best one."""
    if layer is None and head is None:
        return best
    layer, head = best.layer if layer is None else layer, best.head if head is None else head
    return share_of(studio, family, targets, best.where, layer, head)


def _elsewhere(studio: Studio, best: HeadAccuracy) -> str:
    """Return the part of a caption about the best head of the encoder, or "" if `best` is in the encoder."""
    if best.where == "encoder":
        return ""
    other = best_head(studio, "it", antecedent, "encoder")
    return f"; at “it” itself, the best head of this encoder does so in {other.share:.1%}"


def _lines(
    forward: ForwardPass, family: str, word: str | None, heads: Sequence[HeadAccuracy]
) -> tuple[Figure, str]:
    """Draw the picture and write the sentence that describes it."""
    views = [head_weights(forward, each.where, each.layer, each.head) for each in heads]
    where, queries, keys = heads[0].where, views[0].queries, views[0].keys
    query = query_of(queries, family, where, word)
    weights = np.stack([view.weights for view in views])  # (N, T, S)
    # always the first two colours of the documents, independent of the heads' numbers
    label = f"“{queries[query]}”" + (f", for “{family}”" if where == "cross" and word is None else "")
    title = f"writing {label}" if where == "cross" else f"reading {label}"
    picture = word_lines(weights, queries, keys, query=query, heads=range(len(heads)), title=title)
    _number(picture, [each.head for each in heads])
    beginning = (
        f"Where the decoder writes {label}" if where == "cross" else f"Where the encoder reads {label}"
    )
    attended = []
    for colour, row in zip(COLOURS, weights[:, query], strict=False):
        name = f"the {colour} head" if len(heads) > 1 else "this head"
        best = int(row.argmax())
        attended.append(f"{name} attends most to “{keys[best]}” ({row[best]:.2f})")
    return picture, f"{beginning}, {' and '.join(attended)}."


def query_of(words: Sequence[str], family: str, where: str, word: str | None) -> int:
    """Return the position of the query: *it* or *bank*, the last of its French words, or the caller's word.

    Args:
        words: The words of the sentence.
        family: "it" or "bank".
        where: "encoder" or "cross".
        word: The caller's word, or None.

    Raises:
        UserError: If the word is not in the sentence.
    """
    candidates = (word,) if word is not None else (family,) if where == "encoder" else FRENCH[family]
    places = [index for index, each in enumerate(words) if each in candidates]
    if not places:
        raise UserError(
            f"there is no {' or '.join(candidates)} in {' '.join(words)!r}: give word=, one of its words"
        )
    return places[0] if word is not None else places[-1]


def _number(picture: Figure, heads: Sequence[int]) -> None:
    """Write the heads' own numbers above their columns of blocks, where word_lines wrote 0, 1."""
    if len(heads) == 1:
        return
    texts = picture.axes[0].texts
    counted = [text for text in texts if text.get_fontweight() == "bold" and text.get_text().isdigit()]
    for text, head in zip(counted, heads, strict=True):
        text.set_text(str(head))
