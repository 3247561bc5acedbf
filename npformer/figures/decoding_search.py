"""F49 and F50: the distributions of a trained model, and greedy search beside beam search."""

import numpy as np

from npformer.data.vocabulary import END
from npformer.decoding import beam_search
from npformer.errors import UserError
from npformer.figures.decoding_steps import about_model
from npformer.figures.entry import Drawing, figure
from npformer.functional import softmax
from npformer.plots import Grid, beam_tree
from npformer.plots.board import Board
from npformer.plots.compose import beside
from npformer.plots.style import drawing
from npformer.plots.tree import steps_of_trace

STUDENT, ENGLISH = "je suis étudiant", "i am a student"
WORDS = ("a", "am", "i", "thanks", "student")  # the document's vocabulary; the end symbol is the sixth

# As the document prints them: rounded, so that not every row has the sum 1.
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


@figure("F49", "Distributions of a trained model", source="S2", data="FO + TR")
def trained_distributions(
    studio, *, sentence: str = STUDENT, translation: str = ENGLISH, words: tuple[str, ...] = WORDS
) -> Drawing:
    """The rows that the document prints, beside those of the model trained here at the same words.

    Errors: UserError for words that the model does not know.
    """
    translator = studio.from_french
    vocabulary = translator.target_codec.vocabulary
    unknown = vocabulary.unknown(words)
    if unknown:
        raise UserError(f"the model does not know {unknown[0]!r}: give words of its vocabulary")
    seen = studio.look(sentence, translation, translator=translator)
    probabilities, _ = softmax(seen.logits[0])  # (T, V)
    rows = probabilities[:, [*vocabulary.encode(words), END]]  # (T, N)
    picture = _grids(rows, words, seen.predicted)
    ours = cross_entropy(probabilities, seen.batch.target_out[0])
    caption = (
        f"A row is a position of “{translation}”, a column a word; the right word should have all. Left: the "
        f"numbers that the document prints (mean cross-entropy {_of_printed():.4f}). Right: those of a model "
        f"trained here ({ours:.4f}), in which {len(vocabulary)} words share each row's 1."
    )
    return Drawing(picture, caption + about_model(studio, sentence))


def cross_entropy(probabilities, targets) -> float:
    """Mean of -log p(right word). Shapes: probabilities (T, V), targets (T,)."""
    return float(-np.log(probabilities[np.arange(len(targets)), targets]).mean())


def _of_printed() -> float:
    return cross_entropy(PRINTED, PRINTED_TARGETS)


def _grids(rows, words, positions):
    """Two tables of numbers, darker where larger."""

    def write(value):
        return "<.001" if value < 0.0005 else f"{value:.3f}".rstrip("0").lstrip("0")

    ends = [*WORDS, "<eos>"], [*words, "</S>"]
    with drawing(positions, words):
        board = Board([PRINTED, rows], write=write, names=[*ends[0], *ends[1]])
        left = board.grid(_table(PRINTED, "as printed", ends[0], [*ENGLISH.split(), "<eos>"]), 0, 0)
        board.grid(_table(rows, "trained here", ends[1], positions), left.right + 1.2, 0)
        return board.cut()


def _table(values, label, columns, rows) -> Grid:
    return Grid(values, label, "softmax", rows=rows, columns=columns, numbers=True, shade=True)


@figure("F50", "Greedy search and beam search", source="S2", data="TR")
def greedy_and_beam(studio, *, sentence: str = STUDENT, beam: int = 2) -> Drawing:
    """The tree of a beam search of the trained model beside the single path of greedy search."""
    translator = studio.from_french
    codec = translator.target_codec
    ids = studio.look(sentence, "", translator=translator).batch.source  # (1, S)
    found, trees = [], []
    for width in (1, beam):
        trace: list = []
        best = beam_search(translator.model, ids, beam=width, length_penalty=0.0, trace=trace)[0][0]
        found.append(best)
        trees.append(steps_of_trace(trace[0], codec.vocabulary.words, END))
    picture = beside(
        [lambda ax=None, tree=tree: beam_tree(tree, start="<S>", ax=ax) for tree in trees],
        names=["greedy: the likeliest word", f"beam search: the best {beam} beginnings"],
        down=True,
    )
    first = [f"“{node.word}” ({node.log_prob:.2f})" for node in trees[1][0]]
    greedy, best = found
    caption = (
        f"“{sentence}”: greedy search keeps one beginning, a beam of {beam} the best {beam}, at first "
        f"{' and '.join(first)}, with the log-probability of all their words. Grey ones were kept for a step "
        f"and then overtaken. {_comparison(codec, greedy, best)}"
    )
    return Drawing(picture, caption + about_model(studio, sentence))


def _comparison(codec, greedy, best) -> str:
    texts = f"“{codec.decode(greedy.ids)}”", f"“{codec.decode(best.ids)}”"
    if greedy.ids == best.ids:
        return f"Both find {texts[0]} ({greedy.log_prob:.2f})."
    return f"Greedy finds {texts[0]} ({greedy.log_prob:.2f}), the beam {texts[1]} ({best.log_prob:.2f})."
