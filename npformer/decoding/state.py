"""What decoding keeps from one word to the next, in rows: one row a hypothesis.

Two classes that do the same. CachedState keeps keys and values, so that a step computes one position;
PrefixState keeps the words and computes every position anew. The second is the plain one, and the tests
hold the first to it.
"""

import numpy as np

from npformer.backend import is_array, like


class CachedState:
    """What the model keeps of the words so far, and of the source: keys and values, or a recurrent state.

    `sentence` (R,) says which row of the source each hypothesis translates; at first, each its own.
    Shapes: source (B, S) ids, padded.
    """

    def __init__(self, model, source):
        self.model = model
        self.sentence = np.arange(len(source))  # (R,)
        # trees of arrays whose first axis is R; a Transformer's are keys and values, a pair for each layer
        self.memory, self.mask = model.encode(source)
        self.past = None
        self.length = 0  # T

    def step(self, words):
        """Add one word to each hypothesis, and score the next. Shapes: words (R,) -> logits (R, V)."""
        logits, self.past = self.model.step(words, self.length, self.past, self.memory, self.mask)
        self.length += 1
        return logits

    def select(self, rows):
        """Row i becomes what row rows[i] was: rows may go, change places, or become several."""
        if np.array_equal(rows, np.arange(len(self.sentence))):
            return
        sentence = self.sentence[rows]
        index = like(rows, self.mask)
        self.past = take_rows(self.past, index)
        # all hypotheses of a sentence see the same source: while they only change places among
        # themselves, as beams do at most steps, the larger part of the state need not be copied
        if not np.array_equal(sentence, self.sentence):
            self.memory, self.mask = take_rows(self.memory, index), self.mask[index]
        self.sentence = sentence


class PrefixState:
    """The words so far, and the whole model run on them at each step."""

    def __init__(self, model, source):
        self.model = model
        self.sentence = np.arange(len(source))  # (R,)
        self.source = source  # (B, S)
        self.prefix = np.empty((len(source), 0), np.int64)  # (R, T)

    def step(self, words):
        """Add one word to each hypothesis, and score the next. Shapes: words (R,) -> logits (R, V)."""
        self.prefix = np.concatenate([self.prefix, words[:, None]], 1)
        logits, _ = self.model.forward(self.source[self.sentence], self.prefix)  # (R, T, V)
        return logits[:, -1]

    def select(self, rows):
        """Row i becomes what row rows[i] was."""
        self.sentence, self.prefix = self.sentence[rows], self.prefix[rows]


def start(model, source, *, cached=True):
    """The state before the first word."""
    return (CachedState if cached else PrefixState)(model, source)


def take_rows(tree, index):
    """The chosen rows of every array in a tree of lists and NamedTuples; None stays None."""
    if tree is None or is_array(tree):
        return None if tree is None else tree[index]
    taken = [take_rows(branch, index) for branch in tree]
    return type(tree)(*taken) if hasattr(tree, "_fields") else taken
