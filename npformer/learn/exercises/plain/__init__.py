"""Plain solutions of the exercises, with the mistakes that learners make in them.

A solution is written as the hints suggest, in plain NumPy and with the names of the stub. The grader makes
each mistake in its source. If the changed solution gives the learner's results, the message names the
mistake.
"""

from npformer.learn.exercises.plain import (
    attending,
    attention,
    beginnings,
    decoding,
    embeddings,
    generation,
    heads,
    layers,
    losses,
    recurrent,
    stacks,
    today,
    training,
    translation,
)
from npformer.learn.exercises.plain.registry import MISTAKES, PLAIN, Mistake

__all__ = [
    "MISTAKES",
    "PLAIN",
    "Mistake",
    "attending",
    "attention",
    "beginnings",
    "decoding",
    "embeddings",
    "generation",
    "heads",
    "layers",
    "losses",
    "recurrent",
    "stacks",
    "today",
    "training",
    "translation",
]
