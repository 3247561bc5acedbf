"""Speculative decoding: the tokens have the distribution of the target model, whatever the draft proposes."""

import itertools

import numpy as np
import pytest

from npformer import UserError
from npformer.functional import softmax
from npformer.generation import sample_ids, speculative_ids
from npformer.generation.speculative import accept
from npformer.models.gpt import GPT, GPTConfig

MOST = 2.2  # of chi-square / degrees of freedom: for 9 and more of these, exceeded once in 50 seeds


def gpt(seed, spread=1.0, vocab_size=4, context=8):
    config = GPTConfig(vocab_size=vocab_size, d_model=8, n_layers=1, n_heads=2, context=context)
    model = GPT(config, rng=np.random.default_rng(seed))
    model.values *= 0
    model.values += spread * np.random.default_rng(seed).standard_normal(model.values.size) / 2
    return model


def chi_square(counts, p):
    """Return chi-square by the degrees of freedom, with rare outcomes joined."""
    expected = np.asarray(p) * np.sum(counts)
    rare = expected < 5
    pairs = [(np.asarray(counts)[~rare], expected[~rare])]
    if expected[rare].sum() > 0:
        pairs.append(([np.asarray(counts)[rare].sum()], [expected[rare].sum()]))
    observed, expected = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return ((observed - expected) ** 2 / expected).sum() / (len(observed) - 1)


def test_what_is_kept_and_drawn_has_the_distribution_of_the_target():
    """Of two tokens and the next one, with a draft that is often wrong and never draws one of the tokens."""
    rng = np.random.default_rng(0)
    p, _ = softmax(rng.standard_normal((3, 5)))
    q, _ = softmax(np.array([[2.0, -np.inf, 0, 0, 0], [0, 0, 1, -1, 0]]))
    counts, third = np.zeros((5, 5)), np.zeros(5)
    for _ in range(3000):
        tokens = [int(rng.choice(5, p=row)) for row in q]
        kept, token = accept(tokens, p, q, rng)
        text = [*tokens[:kept], token]
        second = text[1] if len(text) > 1 else int(rng.choice(5, p=p[1]))  # a later pass draws it
        counts[text[0], second] += 1
        if kept == 2:
            third[token] += 1
    assert third.sum() > 500
    assert chi_square(third, p[2]) < MOST
    assert chi_square(counts.ravel(), np.outer(p[0], p[1]).ravel()) < MOST


def test_the_distribution_of_a_text_is_that_of_the_target():
    """Of three tokens after a prompt, counted over 300 texts, beside the product of the probabilities."""
    target, draft, prompt = gpt(1), gpt(2), [3, 1]
    texts = list(itertools.product(range(4), repeat=3))
    logits = target(np.array([[*prompt, *text] for text in texts]))[:, 1:4].astype(float)  # (N, 3, V)
    logits = np.where(logits == logits.min(-1, keepdims=True), -np.inf, logits / 0.7)
    p, _ = softmax(logits)
    of_texts = [
        np.prod([row[t] for row, t in zip(*each, strict=True)]) for each in zip(p, texts, strict=True)
    ]
    settings = {"ahead": 2, "temperature": 0.7, "top_k": 3, "rng": np.random.default_rng(3)}
    drawn = [tuple(speculative_ids(target, draft, prompt, 3, **settings).ids) for _ in range(300)]
    assert chi_square([drawn.count(text) for text in texts], of_texts) < MOST


def test_the_most_probable_tokens_are_those_of_greedy_search():
    target, draft = gpt(4, context=16), gpt(5, context=16)
    greedy = [int(token[0]) for token in sample_ids(target, [[2]], 12)]
    for temperature in (1.0, None):
        settings = {"temperature": temperature, "top_k": 1, "seed": 0}
        assert speculative_ids(target, draft, [2], 12, **settings).ids == greedy


@pytest.mark.parametrize(
    ("draft", "prompt", "n_tokens", "says"),
    [
        (gpt(2, vocab_size=5), [0], 3, "knows 4 tokens and the draft 5"),
        (gpt(2), [], 3, "the prompt is empty"),
        (gpt(2), [1.9], 3, r"a prompt is \[1.9\]: give a list of whole numbers"),
        (gpt(2), [0] * 6, 3, "6 tokens and 3 are to follow, and the models read 8"),
    ],
)
def test_what_cannot_be_decoded(draft, prompt, n_tokens, says):
    with pytest.raises(UserError, match=says):
        speculative_ids(gpt(1), draft, prompt, n_tokens)
