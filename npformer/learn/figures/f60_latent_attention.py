"""F60: the latent and the active weights of latent attention, for two descriptions of recipes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npformer.backend import to_numpy
from npformer.data.if_then import FAMOUS, recipe_corpus
from npformer.errors import UserError
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.learn.figures.trained_heads import unknown_words
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.cells import CELL, GAP
from npformer.plots.style import LABEL, TEXT, widest
from npformer.training.if_then import TrainedReader

QUESTIONS = ("trigger", "action")
ROWS = ("latent  l", "active  w")
BETWEEN = 0.16  # inches, from the trigger's weights to the action's
APART = 0.3  # and from one description to the next


class QuestionAttention(NamedTuple):
    """The attention of one of the two questions, trigger or action, to a description."""

    latent: np.ndarray  # (S,)
    weights: np.ndarray  # (S,)
    answer: str  # the predicted class

    @property
    def channel(self) -> str:
        """The answer's channel as it is written in a description."""
        return self.answer.partition(".")[0].lower()


class ReadDescription(NamedTuple):
    """A description with the weights and answers of the model."""

    words: list[str]
    attention: dict[str, QuestionAttention]  # by trigger and action


@figure("F60", "Latent attention", "paperspace", "TR", "20.2 20.4")
def latent_attention(
    studio: Studio, *, descriptions: Sequence[str] = tuple(recipe.description for recipe in FAMOUS)
) -> Drawing:
    """Draw latent and active weights of a model trained here, for each of the descriptions.

    Raises:
        UserError: If there is no description, or one is empty or too long for the model.
    """
    if not descriptions:
        raise UserError("there is no description: give at least one")
    reader: TrainedReader = studio.recipe_reader
    readings = [read(reader, description) for description in descriptions]
    words = [word for each in readings for word in each.words]
    found = [attention for each in readings for attention in each.attention.values()]
    weights = [array for attention in found for array in (attention.latent, attention.weights)]
    what = f"a picture of {len(readings)} descriptions"
    with new_board(words, matrices=weights, names=words, what=what) as board:
        top = 0.0
        for each in readings:
            top = _draw(board, each, top) - APART
    unknown = unknown_words(reader, " ".join(descriptions))
    most = [
        " and ".join(
            f"“{each.words[int(attention.weights.argmax())]}” for the {question}"
            for question, attention in each.attention.items()
        )
        for each in readings
    ]
    recipes = len(recipe_corpus().test)
    return Drawing(
        board.figure,
        (
            "A model trained here predicts the trigger and the action of a recipe, each with its own "
            "attention. The latent weights l measure how informative a word is; the active weights w, "
            "computed from them, select the words that are read. The largest active weight is on "
            f"{'; then on '.join(most)}. Orange frames mark the predicted channels. The latent weights need "
            f"not be on “to”, because every state has read the whole description. Of {recipes:,} recipes "
            "whose two channels did not occur together in training, the model gets "
            f"{100 * reader.score.both:.0f} % right, both trigger and action."
        )
        + unknown,
    )


def _draw(board: Board, description: ReadDescription, top: float) -> float:
    """Draw the words and below them the weights for trigger and action; return the lower end."""
    top -= board.band(description.words) + GAP
    for question, attention in description.attention.items():
        columns = description.words if question == QUESTIONS[0] else None
        matrix = np.stack([attention.latent, attention.weights])  # (2, S)
        placed = board.grid(numbered(matrix, "", "r", rows=ROWS, columns=columns, shade=True), 0, top)
        left, y = -widest(ROWS, TEXT) - 3 * GAP, placed.bottom + CELL / 2
        board.text(left, placed.centre[1], question, size=LABEL, ha="right", weight="bold")
        board.arrow((placed.right + 0.08, y), (placed.right + 0.45, y))
        board.text(placed.right + 0.52, y, attention.answer, size=LABEL, ha="left", parse_math=False)
        for place, word in enumerate(description.words):
            if word == attention.channel:
                x = placed.left + place * board.cell
                board.mark(x, placed.bottom, x + board.cell, placed.bottom + CELL)
        top = placed.bottom - BETWEEN
    return top


def read(reader: TrainedReader, description: str) -> ReadDescription:
    """Return the model's two attentions to a description.

    Raises:
        UserError: If the description is empty or too long.
    """
    *answers, cache = reader.read(description)
    attention = {}
    for question, answer in zip(QUESTIONS, answers, strict=True):
        found = getattr(cache, question).attention
        attention[question] = QuestionAttention(to_numpy(found.latent)[0], to_numpy(found.weights)[0], answer)
    return ReadDescription(reader.codec.words(description), attention)
