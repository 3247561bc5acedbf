"""Going on: what a NextWordModel writes after the beginning of a sentence."""

from typing import Any

import numpy as np

from npformer.data.vocabulary import TextCodec
from npformer.decoding.rules import forbidden_words, next_log_probs
from npformer.errors import UserError


class CachedWords:
    """What a model keeps of the words so far: keys and values, so that a step computes one position."""

    def __init__(self, model):
        self.model, self.past, self.length = model, None, 0

    def step(self, words):
        """Add one word to each row, and score the next. Shapes: words (R,) -> logits (R, V)."""
        logits, self.past = self.model.step(words, self.length, self.past)
        self.length += 1
        return logits


class AllWords:
    """The words so far, and the whole model run on them at each step: the plain one of the two."""

    def __init__(self, model):
        self.model, self.words = model, []

    def step(self, words):
        """Add one word to each row, and score the next. Shapes: words (R,) -> logits (R, V)."""
        self.words.append(words)
        logits, _ = self.model.forward(np.stack(self.words, 1))  # (R, T, V)
        return logits[:, -1]


def continuations(
    model: Any,
    beginning: list[int],
    n: int = 1,
    *,
    rng: np.random.Generator | None = None,
    temperature: float = 1.0,
    max_words: int = 20,
    cached: bool = True,
) -> list[list[int]]:
    """How a sentence goes on, n times: each word drawn from p(word | words so far), until the end symbol.

    Without rng each word is the likeliest, so that all n are the same. Words are drawn with probabilities
    in proportion to p^(1 / temperature): below 1 the likely ones gain, above 1 the others. cached=False
    computes every position anew at every step.
    Shapes: ids of the beginning, without START, which may be empty -> n lists of ids, without the end.
    Errors: UserError for n or a temperature that are not above 0, or more words than the model can hold.
    """
    config = model.config
    _check(config, beginning, n, temperature, max_words)
    forbidden = forbidden_words(config)
    state: CachedWords | AllWords = (CachedWords if cached else AllWords)(model)
    read = [config.start_id, *beginning]
    for word in read[:-1]:
        state.step(np.full(n, word))
    words = np.full(n, read[-1])  # (R,)
    written: list[np.ndarray] = []
    ended = np.zeros(n, bool)
    while len(written) < max_words and not ended.all():
        log_probs = next_log_probs(state, words, forbidden)  # (R, V)
        if rng is not None:
            # the largest of log p + Gumbel noise falls on each word with its p (Gumbel 1954)
            log_probs = log_probs / temperature + rng.gumbel(size=log_probs.shape)
        words = log_probs.argmax(-1)
        written.append(words)
        ended |= words == config.end_id
    return [_until(config.end_id, row) for row in np.stack(written, 1).tolist()]


def continue_text(model: Any, codec: TextCodec, text: str, n: int = 1, **settings: Any) -> list[str]:
    """The whole sentences, n ways to go on with a text; settings are those of continuations."""
    beginning = codec.encode(text)
    return [codec.decode(beginning + more) for more in continuations(model, beginning, n, **settings)]


def _until(end_id, ids):
    """The ids before the first end."""
    return ids[: ids.index(end_id)] if end_id in ids else ids


def _check(config, beginning, n, temperature, max_words):
    if n < 1:
        raise UserError(f"n is {n}: it must be 1 or more")
    if not temperature > 0:
        raise UserError(
            f"temperature is {temperature}: it must be above 0; for the likeliest words leave out rng"
        )
    room = config.max_length - len(beginning)
    if not 1 <= max_words <= room:
        raise UserError(
            f"max_words is {max_words}: after a beginning of {len(beginning)} words give 1 to {room}, since "
            f"the model holds {config.max_length}, the start symbol included"
        )
