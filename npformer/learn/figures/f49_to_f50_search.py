"""F49 and F50: the distributions of a trained model, and greedy search beside beam search."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.data.codecs import Codec
from npformer.data.vocabulary import END
from npformer.errors import UserError
from npformer.functional import softmax
from npformer.generation import Hypothesis, beam_search
from npformer.learn.figures.f44_to_f45_decoding import about_model
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.plots import Grid, beam_tree
from npformer.plots.board import new_board, numbered
from npformer.plots.composition import beside
from npformer.plots.search_tree import Node, steps_of_trace
from npformer.pretrained import Translator

FIRST = ("i", "a")  # the two words that the document's beam keeps at first
STUDENT, ENGLISH = "je suis étudiant", "i am a student"
WORDS = ("a", "am", "i", "thanks", "student")  # the document's vocabulary; the end symbol is the sixth

# As printed in the document: rounded, so that not every row sums to 1.
PRINTED = np.array(
    [
        [0.01, 0.02, 0.93, 0.01, 0.03, 0.01],
        [0.01, 0.8, 0.1, 0.05, 0.01, 0.03],
        [0.99, 0.001, 0.001, 0.001, 0.002, 0.001],
        [0.001, 0.002, 0.001, 0.02, 0.94, 0.01],
        [0.01, 0.01, 0.001, 0.001, 0.001, 0.98],
    ]
)
PRINTED_TARGETS = [2, 1, 0, 4, 5]


@figure("F49", "Distributions of a trained model", "datawhale", "FO + TR", "12.1 14.1")
def trained_distributions(
    studio: Studio, *, sentence: str = STUDENT, translation: str = ENGLISH, words: tuple[str, ...] = WORDS
) -> Drawing:
    """Draw the rows printed in the document beside those of a model trained here, for the same words.

    Args:
        studio: The source of the trained model.
        sentence, translation: A French sentence, and its English translation.
        words: The words of the columns, without the end symbol.

    Raises:
        UserError: If the model does not know one of the words.
    """
    translator = studio.from_french
    vocabulary = translator.codec.target.vocabulary
    word_ids = [_known_id(translator.codec.target, word) for word in words]
    forward = studio.forward_pass(sentence, translation, translator=translator)
    probabilities, _ = softmax(forward.logits[0])  # (T, V)
    rows = probabilities[:, [*word_ids, END]]  # (T, N)
    tables = [
        _table(PRINTED, "as printed", [*WORDS, "<eos>"], [*ENGLISH.split(), "<eos>"]),
        _table(rows, "trained here", [*words, "</S>"], forward.predicted),
    ]
    names = [*WORDS, "<eos>", *words, "</S>"]
    with new_board(forward.predicted, words, matrices=[PRINTED, rows], write=_write, names=names) as board:
        left = board.grid(tables[0], 0, 0)
        board.grid(tables[1], left.right + 1.2, 0)
    printed = cross_entropy(PRINTED, PRINTED_TARGETS)
    ours = cross_entropy(probabilities, forward.predicted_ids[0])
    caption = (
        f"Each row is a position of “{translation}” and each column a word. The right word should get "
        f"probability 1. Left: the numbers printed in the document (mean cross-entropy {printed:.4f}). "
        f"Right: those of a model trained here ({ours:.4f}), whose rows sum to 1 over all {len(vocabulary)} "
        "words of its vocabulary."
    )
    return Drawing(board.figure, caption + about_model(studio, sentence))


def cross_entropy(probabilities: Array, targets: Sequence[int] | Array) -> float:
    """Return the mean of −log p(right word). Shapes: probabilities (T, V), targets (T,)."""
    return float(-np.log(probabilities[np.arange(len(targets)), targets]).mean())


def _table(values: Array, label: str, columns: Sequence[str], rows: Sequence[str]) -> Grid:
    return numbered(values, label, "softmax", rows=rows, columns=columns, shade=True)


def _write(value: float) -> str:
    return "<.001" if value < 0.0005 else f"{value:.3f}".rstrip("0").lstrip("0")


@figure("F50", "Greedy search and beam search", "datawhale", "TR", "14.1")
def greedy_and_beam(
    studio: Studio, *, sentence: str = STUDENT, beam: int = 2, first: Sequence[str] | None = None
) -> Drawing:
    """Draw the tree of a beam search of a trained model and the single path of greedy search.

    The document assumes that the beam keeps “I” and “a” at first. Which words a trained model keeps there
    depends on its training, because all but the most probable one are improbable. If it keeps others in the
    document's sentence, the first words of the tree are given, and the picture says so.

    Args:
        studio: The source of the trained model.
        sentence, beam: A French sentence, and the number of prefixes that beam search keeps.
        first: The words that the beam keeps at first: by default those of the document for its sentence, and
            the most probable ones for other sentences.

    Raises:
        UserError: If the model does not know one of the words.
    """
    translator = studio.from_french
    codec = translator.codec.target
    ids = studio.forward_pass(sentence, "", translator=translator).source_ids  # (1, S)
    if first is None:
        first = FIRST if sentence == STUDENT else ()
    greedy, greedy_tree = _search(translator, ids, 1)
    best, tree = _search(translator, ids, beam)
    given = bool(first) and {node.token for node in tree[0]} != set(first)
    if given:
        best, tree = _search(translator, ids, beam, [_known_id(codec, word) for word in first])
    kept = " and ".join(f"“{node.token}”" for node in tree[0])
    name = f"beam search: the best {beam} prefixes, at first {kept}{' (given)' if given else ''}"
    picture = beside(
        [partial(beam_tree, steps, start="<S>") for steps in (greedy_tree, tree)],
        names=["greedy search: the most probable token", f"{name}; grey: dropped at the next step"],
        down=True,
    )
    numbers = " and ".join(f"“{node.token}” ({node.log_prob:.2f})" for node in tree[0])
    why = "; these two are given, as the document assumes them" if given else ""
    caption = (
        f"“{sentence}”: greedy search keeps one prefix, a beam of {beam} keeps the best {beam}, at first "
        f"{numbers}{why}. The numbers are the log-probabilities of all tokens so far. Grey prefixes "
        f"were kept for a step and then dropped. {_comparison(codec, greedy, best)}"
    )
    return Drawing(picture, caption + about_model(studio, sentence))


def _search(
    translator: Translator, ids: Array, beam: int, first: Sequence[int] | None = None
) -> tuple[Hypothesis, list[list[Node]]]:
    """Return the best translation of a beam search, and the steps of its tree."""
    trace: list[Any] = []
    found = beam_search(translator.model, ids, beam=beam, length_penalty=0.0, first=first, trace=trace)
    return found[0][0], steps_of_trace(trace[0], translator.codec.target.vocabulary.words, END)


def _known_id(codec: Codec, word: str) -> int:
    """Return the id of a word, or raise a UserError if the vocabulary does not have it."""
    if codec.vocabulary.unknown([word]):
        raise UserError(f"the model does not know {word!r}: give words of its vocabulary")
    return int(codec.vocabulary.encode([word])[0])


def _comparison(codec: Codec, greedy: Hypothesis, best: Hypothesis) -> str:
    texts = f"“{codec.decode(greedy.ids)}”", f"“{codec.decode(best.ids)}”"
    if greedy.ids == best.ids:
        return f"Both find {texts[0]} ({greedy.log_prob:.2f})."
    return f"Greedy finds {texts[0]} ({greedy.log_prob:.2f}), the beam {texts[1]} ({best.log_prob:.2f})."
