"""Plain sentences: everything but the two ambiguous words, so that the rest of the grammar can be learned."""

from random import Random

from npformer.data.corpus import plain_actions, plain_states
from npformer.data.corpus.draws import weighted
from npformer.data.corpus.pairs import Pair

# How often each kind of sentence is drawn.
_KINDS = (
    (7, plain_actions.action),
    (2.5, plain_actions.liking),
    (2, plain_actions.having),
    (3, plain_states.mood),
    (3, plain_states.quality),
    (2.5, plain_states.being_somewhere),
    (4.5, plain_actions.going),
    (2.5, plain_states.existence),
    (1.2, plain_states.part),
    (1.5, plain_states.comparison),
    (3, plain_states.reason),
    (4, plain_states.trade),
    (0.5, plain_actions.thanks),
    (0.8, plain_actions.thinking),
    (0.7, plain_states.where),
)


def draw_plain(rng: Random) -> Pair:
    """A sentence of one of these kinds."""
    kind = weighted(rng, _KINDS)
    return Pair(*kind(rng).join(), "plain")
