"""What training compares: the probabilities of a model with those that it should have given."""

from collections.abc import Sequence

import numpy as np

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import words_of
from npformer.figures.position_figures import short
from npformer.functional import cross_entropy, kl_divergence, l2_distance, smooth_targets
from npformer.plots import Grid, probability_bars
from npformer.plots.board import Board
from npformer.plots.palette import COLOURS
from npformer.plots.style import drawing

VOCABULARY = ("a", "am", "I", "thanks", "student", "<eos>")
UNTRAINED = (0.2, 0.2, 0.1, 0.2, 0.2, 0.1)


@figure("F47", "merci: what an untrained model says, and what it should say", source="S2", data="FO")
def untrained_and_target(
    studio,
    *,
    probabilities: Sequence[float] = UNTRAINED,
    target: str = "thanks",
    vocabulary: Sequence[str] = VOCABULARY,
    smoothing: float = 0.0,
) -> Drawing:
    """Two distributions over six words, and three ways to say how far apart they are."""
    p = _distribution(probabilities, vocabulary)
    target_id = word_id(target, vocabulary)
    q = smooth_targets(np.array([target_id]), len(vocabulary), _share(smoothing))[0]  # (V,)
    logits = np.log(p)  # their softmax is p again
    distance, _ = l2_distance(logits, q)
    entropy, _ = cross_entropy(logits[None], np.array([target_id]), smoothing=smoothing)
    divergence, _ = kl_divergence(logits, q)
    picture = probability_bars(p, vocabulary, target=q, title="“merci”: probability of each word")
    ax = picture.axes[0]
    for bar in ax.patches[: len(p)]:  # where several words tie, none of them is the model's choice
        bar.set_facecolor(COLOURS["r"])
    if np.isclose(entropy, divergence):  # a one-hot target has no entropy of its own
        losses = f"cross-entropy and KL divergence {entropy:.4f}"
    else:
        losses = f"cross-entropy {entropy:.4f}, KL divergence {divergence:.4f}"
    caption = (
        f"For “merci” the untrained model gives “{target}” a probability of {short(p[target_id])}, and the "
        f"target is {short(q[target_id])}. How far apart are the two distributions? L2 distance "
        f"{distance:.4f}, {losses}: training makes such a number smaller."
    )
    return Drawing(picture, caption)


@figure("F48", "Target distributions of a sentence", source="S2", data="FO")
def target_distributions(
    studio,
    *,
    sentence: str = "i am a student <eos>",
    vocabulary: Sequence[str] = VOCABULARY,
    smoothing: float = 0.0,
) -> Drawing:
    """A row for each position of the sentence: 1 at its word, 0 elsewhere."""
    words = words_of(sentence)
    ids = [word_id(word, vocabulary) for word in words]
    targets = smooth_targets(np.array(ids), len(vocabulary), _share(smoothing))  # (T, V)
    with drawing(words, list(vocabulary)):
        board = Board([targets], write=short, names=vocabulary)
        rows = [f"position #{i}: {word}" for i, word in enumerate(words, 1)]
        cells = Grid(targets, "", "k", rows=rows, columns=vocabulary, numbers=True, shade=True)
        placed = board.grid(cells, 0, 0)
        for index in range(len(vocabulary)):
            x = (index + 0.5) * board.cell
            board.text(x, placed.bottom - 0.07, str(index), va="top", color=COLOURS["faint"])
        board.text(-0.12, placed.bottom - 0.07, "id", ha="right", va="top", color=COLOURS["faint"])
        board.text(placed.right + 0.12, placed.top + 0.07, "argmax", ha="left", va="bottom")
        for i, best in enumerate(targets.argmax(-1)):
            y = placed.top - (i + 0.5) * (placed.top - placed.bottom) / len(words)
            board.text(placed.right + 0.36, y, str(best), weight="bold")
        picture = board.cut()
    caption = (
        f"What the model should say at each position of “{sentence}”: all probability on one word, so the "
        f"argmax runs {', '.join(map(str, targets.argmax(-1)))}."
    )
    if smoothing:
        caption = (
            f"What the model should say at each position of “{sentence}” with label smoothing {smoothing:g}: "
            f"{short(targets.max())} on the right word and {short(targets.min())} on each other one."
        )
    return Drawing(picture, caption)


def word_id(word: str, vocabulary: Sequence[str]) -> int:
    """The place of a word in a vocabulary, capitals or not. Errors: UserError where it is not there."""
    names = [name.lower() for name in vocabulary]
    if word.lower() not in names:
        raise UserError(f"{word!r} is not in the vocabulary: choose among {', '.join(vocabulary)}")
    return names.index(word.lower())


def _distribution(probabilities, vocabulary) -> np.ndarray:
    """Errors: UserError for what is no distribution over the vocabulary with all words possible."""
    p = np.asarray(probabilities, np.float64)
    if p.shape != (len(vocabulary),) or not (p > 0).all() or abs(p.sum() - 1) > 1e-6:
        raise UserError(
            f"probabilities is {probabilities!r}: give {len(vocabulary)} numbers above 0 that sum to 1"
        )
    return p


def _share(smoothing) -> float:
    if not 0 <= smoothing < 1:
        raise UserError(f"smoothing is {smoothing!r}: it is a share, from 0 up to but not 1")
    return smoothing
