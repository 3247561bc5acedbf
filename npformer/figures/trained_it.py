"""F29, F30 and F52: what *it* stands for and which *bank* is meant, in the heads that find out most often."""

from collections.abc import Sequence

import numpy as np

from npformer.decoding.exam import Look as Head
from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.studio import Look
from npformer.figures.trained_heads import (
    Targets,
    antecedent,
    best_head,
    deciders,
    look_at_pair,
    seen_by,
    share_of,
    unknown_words,
)
from npformer.plots import Figure, word_lines

ANIMAL = "the animal didn't cross the street because it was too tired"
BANK = "i arrived at the bank after crossing the river"

# Where one of these is written, the decoder has had to decide what *it* or *bank* is.
FRENCH = {"it": ("il", "elle"), "bank": ("rive", "banque")}
COLOURS = ("orange", "green")


@figure("F29", "“it” attending, in one head", source="S2", data="TR")
def one_head(
    studio,
    *,
    sentence: str = ANIMAL,
    where: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
) -> Drawing:
    """Lines from *it* to the words of the sentence, in the head that looks at its noun most often.

    where: "encoder" asks the encoder's heads at *it*, "cross" the decoder's at the step that writes il or
    elle; without it, whichever has the better head. layer, head: another one. word: another query.
    """
    best = best_head(studio, "it", antecedent, where)
    best = _other(studio, "it", antecedent, best, layer, head)
    seen = look_at_pair(studio, sentence)
    picture, told = _lines(seen, "it", word, [best])
    caption = (
        f"{told} Counted over all {best.sentences} held-out sentences with “it”, the strongest look of this "
        f"head (layer {best.layer}, head {best.head}) goes to the noun that “it” stands for in "
        f"{best.share:.1%}{_elsewhere(studio, best)}."
    )
    return Drawing(picture, caption + unknown_words(studio.translator, sentence))


@figure("F30", "“it” attending, in two heads", source="S2", data="TR")
def two_heads(
    studio, *, sentence: str = ANIMAL, where: str | None = None, word: str | None = None
) -> Drawing:
    """The same with two heads: orange the one that finds the noun, green the one that finds the adjective."""
    noun = best_head(studio, "it", antecedent, where)
    adjective = best_head(studio, "it", deciders, noun.where, but=noun)
    seen = look_at_pair(studio, sentence)
    picture, told = _lines(seen, "it", word, [noun, adjective])
    caption = (
        f"{told} Counted over all {noun.sentences} held-out sentences with “it”, the strongest look of the "
        f"orange head (layer {noun.layer}, head {noun.head}) goes to the noun in {noun.share:.1%}, that of "
        f"the green one (layer {adjective.layer}, head {adjective.head}) to the adjective that decides in "
        f"{adjective.share:.1%}."
    )
    return Drawing(picture, caption + unknown_words(studio.translator, sentence))


@figure("F52", "“bank” and “river”", source="S3", data="TR")
def bank_and_river(
    studio,
    *,
    sentence: str = BANK,
    where: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
) -> Drawing:
    """Lines from *bank* to the words that decide which bank it is; the keywords are those of F29."""
    best = best_head(studio, "bank", deciders, where)
    best = _other(studio, "bank", deciders, best, layer, head)
    seen = look_at_pair(studio, sentence)
    picture, told = _lines(seen, "bank", word, [best])
    caption = (
        f"{told} Counted over all {best.sentences} held-out sentences with “bank”, the strongest look of "
        f"this head (layer {best.layer}, head {best.head}) goes to a word that decides, such as river or "
        f"money, in {best.share:.1%}."
    )
    return Drawing(picture, caption + unknown_words(studio.translator, sentence))


def _other(studio, family: str, targets: Targets, best: Head, layer, head) -> Head:
    """The head that the caller asked for, with its share, or the best."""
    if layer is None and head is None:
        return best
    layer, head = best.layer if layer is None else layer, best.head if head is None else head
    return share_of(studio, family, targets, best.where, layer, head)


def _elsewhere(studio, best: Head) -> str:
    """What the encoder does at *it* itself, where the decoder's heads were chosen."""
    if best.where == "encoder":
        return ""
    other = best_head(studio, "it", antecedent, "encoder")
    return f"; at “it” itself, the best head of this encoder does so in {other.share:.1%}"


def _lines(seen: Look, family: str, word: str | None, heads: Sequence[Head]) -> tuple[Figure, str]:
    """The picture, and the sentence that says what it shows."""
    views = [seen_by(seen, each.where, each.layer, each.head) for each in heads]
    where, queries, keys = heads[0].where, views[0].queries, views[0].keys
    query = query_of(queries, family, where, word)
    weights = np.stack([view.weights for view in views])  # (N, T, S)
    # the documents' first two colours, whatever the heads' numbers
    asked = f"“{queries[query]}”" + (f", for “{family}”" if where == "cross" and word is None else "")
    title = f"writing {asked}" if where == "cross" else f"reading {asked}"
    picture = word_lines(weights, queries, keys, query=query, heads=range(len(heads)), title=title)
    _number(picture, [each.head for each in heads])
    asks = f"Where the decoder writes {asked}" if where == "cross" else f"Where the encoder reads {asked}"
    looks = []
    for colour, row in zip(COLOURS, weights[:, query], strict=False):
        name = f"the {colour} head" if len(heads) > 1 else "this head"
        best = int(row.argmax())
        looks.append(f"{name} looks most at “{keys[best]}” ({row[best]:.2f})")
    return picture, f"{asks}, {' and '.join(looks)}."


def query_of(words: Sequence[str], family: str, where: str, word: str | None) -> int:
    """Which word asks: *it* or *bank*, the last of its French words, or the one that the caller wants.

    Errors: UserError where it is not there.
    """
    wanted = (word,) if word is not None else (family,) if where == "encoder" else FRENCH[family]
    places = [index for index, each in enumerate(words) if each in wanted]
    if not places:
        raise UserError(
            f"there is no {' or '.join(wanted)} in {' '.join(words)!r}: give word=, one of its words"
        )
    return places[0] if word is not None else places[-1]


def _number(picture: Figure, heads: Sequence[int]) -> None:
    """Write the heads' own numbers over their columns of blocks, where word_lines counted 0, 1."""
    if len(heads) == 1:
        return
    texts = picture.axes[0].texts
    counted = [text for text in texts if text.get_fontweight() == "bold" and text.get_text().isdigit()]
    for text, head in zip(counted, heads, strict=True):
        text.set_text(str(head))
