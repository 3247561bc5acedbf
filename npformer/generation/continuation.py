"""Continuation: complete a sentence with a CausalLanguageModel, which knows where a sentence starts and ends.

The continuation of a text without these symbols by a GPT is in npformer.generation.sampling.
"""

from typing import Any

import numpy as np

from npformer.data.codecs import TextCodec
from npformer.errors import UserError, quantity
from npformer.generation.sampling import check_sampling, choose_tokens
from npformer.generation.search import forbidden_tokens
from npformer.generation.state import start


def continuations(
    model: Any,
    beginning: list[int],
    n: int = 1,
    *,
    rng: np.random.Generator | None = None,
    temperature: float = 1.0,
    max_tokens: int = 20,
    cached: bool = True,
) -> list[list[int]]:
    """Continue a sequence n times, each token drawn from p(token | tokens so far), until the end symbol.

    Args:
        model: A language model.
        beginning: The ids of the beginning, without the start symbol. It may be empty.
        n: The number of continuations.
        rng: The generator of the draws. Without it, the most probable token is chosen each time, and all n
            results are the same.
        temperature: Tokens are drawn with probabilities proportional to p^(1 / temperature): below 1 the
            probable ones become more probable, above 1 less.
        max_tokens: The largest number of tokens of a continuation.
        cached: False computes all positions again at each step.

    Returns:
        n lists of ids, without the beginning and the end symbol.

    Raises:
        UserError: If n or the temperature is not above 0, or the model cannot hold as many tokens.
    """
    config = model.config
    _check(config, beginning, n, temperature, max_tokens)
    forbidden = forbidden_tokens(config)
    state = start(model, n_rows=n, cached=cached)
    read = [config.start_id, *beginning]
    for token in read[:-1]:
        state.decode_step(np.full(n, token))
    tokens = np.full(n, read[-1])  # (R,)
    generated: list[np.ndarray[Any, Any]] = []
    ended = np.zeros(n, bool)
    while len(generated) < max_tokens and not ended.all():
        logits = state.decode_step(tokens)  # (R, V)
        logits[:, forbidden] = -np.inf
        tokens = choose_tokens(logits, rng, temperature=temperature)
        generated.append(tokens)
        ended |= tokens == config.end_id
    return [_until(config.end_id, row) for row in np.stack(generated, 1).tolist()]


def continue_text(model: Any, codec: TextCodec, text: str, n: int = 1, **settings: Any) -> list[str]:
    """Return n texts that begin with `text`.

    Args:
        model: A language model.
        codec: The codec of the model.
        text: The beginning. It may be empty.
        n: The number of texts.
        settings: The other settings of `continuations`.

    Raises:
        UserError: As for `continuations`.
    """
    beginning = codec.encode(text)
    return [codec.decode(beginning + more) for more in continuations(model, beginning, n, **settings)]


def _until(end_id: int, ids: list[int]) -> list[int]:
    """Return the ids before the first end symbol."""
    return ids[: ids.index(end_id)] if end_id in ids else ids


def _check(config: Any, beginning: list[int], n: int, temperature: float, max_tokens: int) -> None:
    if n < 1:
        raise UserError(f"n is {n}: it must be 1 or more")
    check_sampling(temperature)
    room = config.max_length - len(beginning)
    if not 1 <= max_tokens <= room:
        raise UserError(
            f"max_tokens is {max_tokens}: after a beginning of {quantity(len(beginning), 'token')} "
            f"give 1 to {room}, "
            f"since the model holds {config.max_length}, the start symbol included"
        )
