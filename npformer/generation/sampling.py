"""Sampling: draw each next token from the probabilities that a decoder-only model gives.

The temperature makes the probabilities more or less equal. Top-k and top-p sampling leave out the tokens with
small probabilities. Each of these tokens is unlikely, but together they would often be drawn, and one of them
is enough to spoil a text.
"""

import inspect
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.errors import UserError, quantity
from npformer.functional.softmax import softmax
from npformer.generation.search import DIVERGED, best_token
from npformer.validation import is_number, require_count, require_index, require_name, short

Prompts = Sequence[Sequence[int]] | Array


def token_probabilities(
    logits: Array, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """Return the probabilities with which sampling draws each token.

    They are proportional to exp(logit / temperature), and 0 for the tokens that top_k and top_p leave out.

    Args:
        logits: The logits of the next token, of shape (B, V). A token with the logit -inf is never drawn.
        temperature: Below 1, probable tokens become more probable. Above 1, they become less probable.
        top_k: Keep only the k most probable tokens. Of equally probable tokens, the first ones are kept.
        top_p: Keep only the nucleus: the smallest set of the most probable tokens whose probabilities sum to
            top_p or more. If top_k is given too, these are the probabilities after top_k.

    Returns:
        The probabilities, of shape (B, V), in float64 on the host. Each row sums to 1.

    Raises:
        UserError: If a setting is impossible, or if the logits are not finite.

    Source: Holtzman et al. 2020, section 3.1 (top-p) and section 5.1 (top-k, temperature); Fan et al. 2018
        (top-k).
    """
    check_sampling(temperature, top_k, top_p)
    logits = to_numpy(logits).astype(np.float64)
    peak = logits.max(-1, keepdims=True)  # (B, 1) nan if there is one in the row
    if not np.isfinite(peak).all():
        raise UserError(DIVERGED)
    logits -= peak
    with np.errstate(over="ignore"):  # at a tiny temperature, -inf is right
        logits /= temperature
    p, _ = softmax(logits)  # (B, V)
    return p if top_k is None and top_p is None else _without_improbable(p, top_k, top_p)


def _without_improbable(p: Array, top_k: int | None, top_p: float | None) -> Array:
    """Set the probabilities that top_k and top_p leave out to 0, and scale the others to sum to 1.

    Shapes: p (B, V), overwritten -> (B, V).
    """
    ranked = -np.sort(-p, axis=-1)  # (B, V) the largest first
    if top_k is not None:
        ranked[:, top_k:] = 0
    sums = ranked.cumsum(-1)
    # a token is kept if the sum of the larger probabilities has not reached top_p
    is_kept = ranked > 0 if top_p is None else sums - ranked < top_p * sums[:, -1:]
    n_kept = is_kept.sum(-1, keepdims=True)  # (B, 1)
    smallest = np.take_along_axis(ranked, n_kept - 1, -1)  # (B, 1)
    larger, equal = p > smallest, p == smallest  # (B, V)
    n_equal = n_kept - larger.sum(-1, keepdims=True)  # (B, 1) of these, the first ones are kept
    p[~(larger | (equal & (equal.cumsum(-1) <= n_equal)))] = 0
    return p / p.sum(-1, keepdims=True)


def draw_tokens(p: Array, rng: np.random.Generator) -> Array:
    """Draw a token from each row of probabilities. Shapes: p (B, V) -> ids (B,).

    The probabilities divide the interval from 0 to 1 into V pieces. A uniform random number is drawn, and the
    token is the one whose piece contains it.
    """
    ends = p.cumsum(-1)  # (B, V) the end of each piece
    u = rng.random((len(p), 1)) * ends[:, -1:]  # the last end is 1 but for rounding errors
    ids: Array = (ends <= u).sum(-1)
    return ids


def choose_tokens(
    logits: Array,
    rng: np.random.Generator | None = None,
    *,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Array:
    """Return the next token of each row: a draw, or the most probable token.

    Args:
        logits: The logits of the next token, of shape (B, V).
        rng: The generator of the draws.
        temperature, top_k, top_p: See token_probabilities. If one of them is given without rng, the generator
            is a new one. Without all four, the most probable token is chosen (greedy decoding).

    Returns:
        The ids, of shape (B,), on the host.

    Raises:
        UserError: If a setting is impossible, or if the logits are not finite.
    """
    rng = sampling_generator(rng, None, temperature, top_k, top_p)
    if rng is None:
        return best_token(logits, [])
    temperature = 1.0 if temperature is None else temperature
    return draw_tokens(token_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p), rng)


def sample_ids(
    model: Any,
    prompt_ids: Prompts,
    n_tokens: int,
    *,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Array]:
    """Continue each prompt of a batch, and yield the next token of all prompts as soon as it is chosen.

    Each token is predicted from all tokens before it, as long as these fit into the context. Then the last
    half of the context is read again, at the positions from 0 on, and leaves room for the other half. So
    later tokens are predicted from between half a context and a whole one. The other prompts of a batch
    change the probabilities by rounding errors only.

    Args:
        model: A GPT.
        prompt_ids: The ids of B prompts, each of at least one token and of at most model.config.context.
        n_tokens: The number of tokens after each prompt.
        temperature, top_k, top_p: See token_probabilities.
        seed: The seed of the draws, a whole number. Each call with the same seed draws the same tokens.
        rng: The generator of the draws, in place of a seed. If another setting is given without both, each
            call draws other tokens. Without any setting, the most probable token is chosen each time.

    Returns:
        An iterator of n_tokens arrays of ids, each of shape (B,).

    Raises:
        UserError: If a setting is impossible, or if a prompt is empty, longer than the context or outside the
            vocabulary.
    """
    rng = sampling_generator(rng, seed, temperature, top_k, top_p)
    require_count("n_tokens", n_tokens)
    prompts = [prompt_of(prompt) for prompt in prompt_ids]
    _check_prompts(prompts, model.config.context)
    choose = partial(choose_tokens, rng=rng, temperature=temperature, top_k=top_k, top_p=top_p)
    return _continue(model, prompts, n_tokens, choose)


# the names of all settings of sample_ids
SETTINGS = [
    name
    for name, parameter in inspect.signature(sample_ids).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
]


def require_sampling(names: Iterable[str], others: Sequence[str] = ()) -> None:
    """Raise UserError unless all names are settings of sample_ids.

    Args:
        names: The names of the settings that were given.
        others: Further names that the caller's function takes, for the message.
    """
    for name in names:
        require_name(name, [*others, *SETTINGS], "setting of sampling")


def sampling_generator(
    rng: np.random.Generator | None,
    seed: int | None,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
) -> np.random.Generator | None:
    """Return the generator of the draws, or None if no setting asks for draws (greedy decoding).

    Args:
        rng, seed, temperature, top_k, top_p: See sample_ids.

    Raises:
        UserError: If a setting is impossible, or if both rng and seed are given.
    """
    check_sampling(1.0 if temperature is None else temperature, top_k, top_p)
    if rng is not None and seed is not None:
        raise UserError(f"seed is {seed!r} and there is an rng, too: give one of them")
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise UserError(f"rng is {short(rng)}: give a generator, such as np.random.default_rng(0), or a seed")
    if seed is not None:
        require_index("seed", seed)
    if rng is None and (seed, temperature, top_k, top_p) != (None,) * 4:
        return np.random.default_rng(seed)
    return rng


def check_sampling(temperature: float, top_k: int | None = None, top_p: float | None = None) -> None:
    """Check the settings of sampling.

    Args:
        temperature, top_k, top_p: See token_probabilities.

    Raises:
        UserError: If one of them is impossible.
    """
    if not (is_number(temperature) and 0 < temperature < math.inf):
        raise UserError(
            f"temperature is {short(temperature)}: it must be a number above 0; leave out all settings of "
            "sampling for the most probable tokens"
        )
    if top_k is not None:
        require_count("top_k", top_k)
    if top_p is not None and not (is_number(top_p) and 0 < top_p <= 1):
        raise UserError(f"top_p is {short(top_p)}: it must be a number above 0 and at most 1")


def prompt_of(ids: Any) -> list[int]:
    """Return the ids of a prompt as a list.

    Raises:
        UserError: If they are no whole numbers.
    """
    try:
        return [operator.index(token) for token in ids]
    except TypeError:
        raise UserError(f"a prompt is {short(ids)}: give a list of whole numbers") from None


def _check_prompts(prompts: list[list[int]], context: int) -> None:
    """Raise UserError if there is no prompt, or if one of them is empty or longer than the context."""
    if not prompts:
        raise UserError("there is no prompt: give at least one")
    for number, prompt in enumerate(prompts, 1):
        if not prompt:
            raise UserError(f"prompt {number} is empty: give at least one token")
        if len(prompt) > context:
            raise UserError(
                f"prompt {number} has {quantity(len(prompt), 'token')}, and the model reads {context} at "
                "most: shorten it"
            )


def _continue(
    model: Any, texts: list[list[int]], n_tokens: int, choose: Callable[[Array], Array]
) -> Iterator[Array]:
    """Yield the next token of all texts, n_tokens times, and append it to them."""
    context, kv_cache = model.config.context, None
    for n_left in range(n_tokens, 0, -1):
        if kv_cache is None or max(map(len, texts)) > context:
            texts = [_shortened(text, context) for text in texts]
            logits, kv_cache = _read_prompts(model, texts, n_left)
        else:
            newest = np.array([text[-1] for text in texts])  # (B,)
            logits, kv_cache = model.decode_step(newest, kv_cache[0].length, kv_cache)
        tokens = choose(logits)  # (B,)
        for text, token in zip(texts, tokens.tolist(), strict=True):
            text.append(token)
        yield tokens


def _shortened(text: list[int], context: int) -> list[int]:
    """Return a text that fits into the context, and of a longer one the last half of a context."""
    return text if len(text) <= context else text[-max(1, context // 2) :]


def _read_prompts(model: Any, prompts: list[list[int]], n_tokens: int) -> tuple[Array, Any]:
    """Read all prompts in one pass, with room in the KV cache for n_tokens - 1 tokens after them.

    Shorter prompts are padded at the end. Under the causal mask no token attends to this padding, and the
    tokens that are generated later overwrite it in the KV cache.

    Returns:
        The logits after each prompt, of shape (B, V), and the KV cache.
    """
    lengths = np.array([len(prompt) for prompt in prompts])  # (B,)
    longest = int(lengths.max())
    ids = np.zeros((len(prompts), longest), np.int64)  # (B, T)
    for row, prompt in zip(ids, prompts, strict=True):
        row[: len(prompt)] = prompt
    kv_cache = model.empty_kv_cache(min(model.config.context, longest + n_tokens - 1))
    equal = bool((lengths == longest).all())
    return model.decode_step(ids, 0, kv_cache, lengths=None if equal else lengths)
