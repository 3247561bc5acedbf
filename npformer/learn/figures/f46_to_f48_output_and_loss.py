"""F46 to F48: from the decoder's vector to a word, and the distributions that the loss compares."""

from collections.abc import Sequence

import numpy as np

from npformer.errors import UserError
from npformer.functional import cross_entropy, kl_divergence, l2_distance, smooth_targets, softmax
from npformer.learn.figures.datawhale_example import generator, small_config, words_of
from npformer.learn.figures.f22_to_f28_one_encoder import short
from npformer.learn.figures.registry import Drawing, figure
from npformer.nn import Linear
from npformer.plots import probability_bars
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.cells import Placed
from npformer.plots.palette import COLOURS
from npformer.plots.style import number

VOCABULARY = ("a", "am", "I", "thanks", "student", "<eos>")
UNTRAINED = (0.2, 0.2, 0.1, 0.2, 0.2, 0.1)


@figure("F47", "merci: the output of an untrained model, and the target", "datawhale", "FO", "12.1")
def untrained_and_target(
    *,
    probabilities: Sequence[float] = UNTRAINED,
    target: str = "thanks",
    vocabulary: Sequence[str] = VOCABULARY,
    smoothing: float = 0.0,
) -> Drawing:
    """Draw two distributions over six words, and compute three distances between them.

    Args:
        probabilities: The output of the untrained model, one number for each word.
        target, vocabulary: The right word, and all words.
        smoothing: The ε of label smoothing, from 0 up to but not including 1.
    """
    p = np.asarray(probabilities, np.float64)
    if p.shape != (len(vocabulary),) or not (p > 0).all() or abs(p.sum() - 1) > 1e-6:
        raise UserError(
            f"probabilities is {probabilities!r}: give {len(vocabulary)} numbers above 0 that sum to 1"
        )
    target_id = _word_id(target, vocabulary)
    q = smooth_targets(np.array([target_id]), len(vocabulary), _share(smoothing))[0]  # (V,)
    logits = np.log(p)  # their softmax is p again
    distance, _ = l2_distance(logits, q)
    entropy, _ = cross_entropy(logits[None], np.array([target_id]), smoothing=smoothing)
    divergence, _ = kl_divergence(logits, q)
    names, title = ("the untrained model", "the target"), "“merci”: the probability of each word"
    picture = probability_bars(p, vocabulary, target=q, names=names, title=title)
    ax = picture.axes[0]
    for bar in ax.patches[: len(p)]:  # all equal, because several words have the largest probability
        bar.set_facecolor(COLOURS["r"])
    if np.isclose(entropy, divergence):  # the entropy of a one-hot target is 0
        losses = f"cross-entropy and KL divergence {entropy:.4f}"
    else:
        losses = f"cross-entropy {entropy:.4f}, KL divergence {divergence:.4f}"
    caption = (
        f"For “merci” the untrained model gives “{target}” a probability of {short(p[target_id])}, and the "
        f"target is {short(q[target_id])}. Three distances between the two distributions: L2 distance "
        f"{distance:.4f}, {losses}. Training makes such a number smaller."
    )
    return Drawing(picture, caption)


@figure("F48", "Target distributions of a sentence", "datawhale", "FO", "12.1 12.3")
def target_distributions(
    *, sentence: str = "i am a student <eos>", vocabulary: Sequence[str] = VOCABULARY, smoothing: float = 0.0
) -> Drawing:
    """Draw a row for each position of the sentence: 1 at its word, 0 elsewhere.

    Args:
        sentence, vocabulary: The target sentence, with its end symbol, and all words.
        smoothing: The ε of label smoothing, from 0 up to but not including 1.
    """
    words = words_of(sentence)
    ids = [_word_id(word, vocabulary) for word in words]
    targets = smooth_targets(np.array(ids), len(vocabulary), _share(smoothing))  # (T, V)
    with new_board(words, list(vocabulary), matrices=[targets], write=short, names=vocabulary) as board:
        rows = [f"position #{i}: {word}" for i, word in enumerate(words, 1)]
        cells = numbered(targets, "", "k", rows=rows, columns=vocabulary, shade=True)
        placed = board.grid(cells, 0, 0)
        for index in range(len(vocabulary)):
            x = (index + 0.5) * board.cell
            board.text(x, placed.bottom - 0.07, str(index), va="top", color=COLOURS["faint"])
        board.text(-0.12, placed.bottom - 0.07, "id", ha="right", va="top", color=COLOURS["faint"])
        board.text(placed.right + 0.12, placed.top + 0.07, "argmax", ha="left", va="bottom")
        for i, best in enumerate(targets.argmax(-1)):
            y = placed.top - (i + 0.5) * (placed.top - placed.bottom) / len(words)
            board.text(placed.right + 0.36, y, str(best), weight="bold")
    caption = (
        f"The target at each position of “{sentence}” has all probability on one word. The argmax of the "
        f"rows is {', '.join(map(str, targets.argmax(-1)))}."
    )
    if smoothing:
        caption = (
            f"The target at each position of “{sentence}” with label smoothing {smoothing:g}: "
            f"{short(targets.max())} on the right word and {short(targets.min())} on each other word."
        )
    return Drawing(board.figure, caption)


def _word_id(word: str, vocabulary: Sequence[str]) -> int:
    """Return the index of a word, in capitals or not, or raise a UserError if it is not in the vocabulary."""
    names = [name.lower() for name in vocabulary]
    if word.lower() not in names:
        raise UserError(f"{word!r} is not in the vocabulary: choose among {', '.join(vocabulary)}")
    return names.index(word.lower())


def _share(smoothing: float) -> float:
    if not 0 <= smoothing < 1:
        raise UserError(f"smoothing is {smoothing!r}: it must be at least 0 and below 1")
    return smoothing


WIDE, HIGH = 2.2, 0.42  # inches, of a box
STEP = 1.7  # from one row of cells to the next
SEED = 0


@figure("F46", "Linear and softmax: from a vector to a word", "datawhale", "FW", "12.1")
def vector_to_word(
    *, word: str = "am", vocabulary: Sequence[str] = VOCABULARY, d_model: int = 8, seed: int = SEED
) -> Drawing:
    """Draw vector → logits → probabilities → argmax → word.

    Args:
        word, vocabulary: The word to which the vector points, and all words.
        d_model, seed: The width of the vectors, and the seed of the random weights.
    """
    chosen = _word_id(word, vocabulary)
    rng = generator(seed)
    d_model = small_config(d_model=d_model).d_model
    layer = Linear(d_model, len(vocabulary), bias=False, rng=rng, dtype=float)
    x = 2.5 * layer.weight.value[:, chosen] + 0.2 * rng.standard_normal(d_model)  # (D,)
    logits, _ = layer.forward(x)  # (V,)
    probabilities, _ = softmax(logits)  # (V,)
    best = int(probabilities.argmax())
    caption = (
        f"A linear layer gives each of the {len(vocabulary)} words a logit, and the softmax gives each a "
        f"probability (the document calls that row log_probs). “{vocabulary[best]}”, id {best}, has the "
        f"largest, {number(probabilities[best])}. This vector was constructed to point to “{word}”; a "
        "decoder learns to compute such vectors."
    )
    with new_board(list(vocabulary), matrices=[x, logits, probabilities], names=vocabulary) as board:
        rows = (  # from below
            (x, "z", "the decoder's output\nat one position"),
            (logits, "linear", "logits"),
            (probabilities, "softmax", "probabilities"),
        )
        edge = -max(len(x), len(vocabulary)) * board.cell / 2 - 0.2
        for row, (values, colour, name) in enumerate(rows):
            cells = numbered(values, "", colour, edge="#5f6368")
            placed = board.grid_at(cells, 0, STEP * row)
            board.text(edge, STEP * row, name, ha="right", va="center")
            if row:
                _numbered(board, placed, vocabulary, best)
        for row, name in enumerate(("linear", "softmax")):
            box = board.box(name, 0, STEP * (row + 0.5), WIDE, HIGH, colour=name)
            board.arrow((0, STEP * row + (0.36 if row else 0.14)), box.bottom)
            board.arrow(box.top, (0, STEP * (row + 1) - 0.33))
        x_best = placed.left + (best + 0.5) * board.cell
        board.arrow((x_best, placed.top + 0.26), (x_best, placed.top + 0.62))
        text = f"argmax {best}: “{vocabulary[best]}”"
        board.text(x_best, placed.top + 0.7, text, size=12, va="bottom", parse_math=False)
    return Drawing(board.figure, caption)


def _numbered(board: Board, placed: Placed, vocabulary: Sequence[str], best: int) -> None:
    """Write words above the cells and their ids below them, and frame the most probable one."""
    for index, word in enumerate(vocabulary):
        x = placed.left + (index + 0.5) * board.cell
        board.text(x, placed.top + 0.06, word, va="bottom", parse_math=False)
        board.text(x, placed.bottom - 0.05, str(index), va="top", color=COLOURS["faint"])
    board.text(placed.left - 0.1, placed.bottom - 0.05, "id", ha="right", va="top", color=COLOURS["faint"])
    left = placed.left + best * board.cell
    board.mark(left, placed.bottom, left + board.cell, placed.top)
