"""Speculative decoding: a small model drafts several tokens, and a large one checks all of them in one pass.

The large model reads the drafted tokens side by side, as in training, so its pass takes little longer than
one for a single token. Each drafted token is kept with a probability that depends on both models. The tokens
that remain have exactly the distribution of the large model, whatever the small one drafts.

Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.generation.sampling import draw_tokens, prompt_of, sampling_generator, token_probabilities
from npformer.validation import require_count


class Speculation(NamedTuple):
    """A text that was decoded speculatively."""

    ids: list[int]  #: the tokens after the prompt
    passes: int  #: of the target model
    drafted: int  #: the number of tokens that the draft model proposed
    accepted: int  #: the number of them that were kept

    @property
    def tokens_per_pass(self) -> float:
        """The mean number of tokens for each pass of the target model, which is 1 without a draft."""
        return len(self.ids) / self.passes


def speculative_ids(
    target: Any,
    draft: Any,
    prompt_ids: Sequence[int] | Array,
    n_tokens: int,
    *,
    ahead: int = 4,
    temperature: float | None = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
) -> Speculation:
    """Continue a prompt with tokens of the distribution of a large GPT, with the help of a small one.

    Args:
        target: The large GPT, from whose distribution the tokens come.
        draft: A small GPT with the same vocabulary.
        prompt_ids: The ids of the prompt, at least one.
        n_tokens: The number of tokens after it. Prompt and tokens must fit into both contexts.
        ahead: The number of tokens that the draft model proposes at a time.
        temperature, top_k, top_p: See token_probabilities. They act on both models.
        seed: The seed of the draws.
        rng: The generator of the draws, in place of a seed.

    Returns:
        The tokens, and the number of passes of the target model.

    Raises:
        UserError: If a setting is impossible, if the vocabularies differ, or if the text does not fit.

    Source: Leviathan et al. 2023, algorithm 1.
    """
    temperature = 1.0 if temperature is None else temperature
    rng = sampling_generator(rng, seed, temperature, top_k, top_p)
    assert rng is not None  # since there is a temperature
    require_count("n_tokens", n_tokens)
    require_count("ahead", ahead)
    text = prompt_of(prompt_ids)
    _check(target, draft, len(text), n_tokens)

    def probabilities(model: Any, kv_cache: Any, count: int) -> Array:
        """Read the tokens that the KV cache lacks. Return p after the last `count` of them, (count, V)."""
        unread = np.array([text[kv_cache[0].length :]])  # (1, T)
        logits, _ = model.decode_step(unread, kv_cache[0].length, kv_cache, every=True)
        return token_probabilities(logits[0, -count:], temperature=temperature, top_k=top_k, top_p=top_p)

    caches = [model.empty_kv_cache(len(text) + n_tokens) for model in (target, draft)]
    end, passes, drafted, accepted = len(text) + n_tokens, 0, 0, 0
    while len(text) < end:
        known, count = len(text), min(ahead, end - len(text) - 1)  # a pass yields one more token
        q = []
        for _ in range(count):
            q.append(probabilities(draft, caches[1], 1)[0])
            text.append(int(draw_tokens(q[-1][None], rng)[0]))
        p = probabilities(target, caches[0], count + 1)  # (count + 1, V)
        kept, token = accept(text[known:], p, q, rng)
        text[known + kept :] = [token]
        for layer_cache in (*caches[0], *caches[1]):  # forget the tokens that were not kept
            layer_cache.length = min(layer_cache.length, len(text) - 1)
        passes, drafted, accepted = passes + 1, drafted + count, accepted + kept
    return Speculation(text[end - n_tokens :], passes, drafted, accepted)


def accept(tokens: Sequence[int], p: Array, q: Sequence[Array], rng: np.random.Generator) -> tuple[int, int]:
    """Decide how many drafted tokens to keep, and draw the token after them.

    A token x is kept with the probability min(1, p(x) / q(x)). The first one that is not kept is replaced by
    a draw from max(0, p - q), divided by its sum. If all are kept, the next token is drawn from p.

    Args:
        tokens: The N drafted tokens.
        p: The probabilities of the target model for each of them and for the token after them, (N + 1, V).
        q: The probabilities from which they were drawn, N arrays of shape (V,).
        rng: The generator.

    Returns:
        The number of tokens to keep, and the token after them.

    Source: Leviathan et al. 2023, section 2.3.
    """
    for kept, token in enumerate(tokens):
        if rng.random() * q[kept][token] >= p[kept, token]:
            rest = np.maximum(p[kept] - q[kept], 0)
            return kept, int(draw_tokens(rest[None], rng)[0])
    return len(tokens), int(draw_tokens(p[-1:], rng)[0])


def _check(target: Any, draft: Any, length: int, n_tokens: int) -> None:
    """Raise UserError unless the models have one vocabulary and the text fits into both contexts."""
    sizes = target.config.vocab_size, draft.config.vocab_size
    if sizes[0] != sizes[1]:
        raise UserError(f"the target model knows {sizes[0]} tokens and the draft {sizes[1]}: use one codec")
    if not length:
        raise UserError("the prompt is empty: give at least one token")
    context = min(target.config.context, draft.config.context)
    if length + n_tokens > context:
        raise UserError(
            f"the prompt has {length} tokens and {n_tokens} are to follow, and the models read {context} at "
            "most: give a shorter prompt or a smaller n_tokens"
        )
