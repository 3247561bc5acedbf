"""Sampling: probabilities, draws, decoding with a KV cache, prompts of different lengths, full contexts."""

import itertools

import numpy as np
import pytest
import strict_cupy

from npformer.errors import UserError
from npformer.generation.sampling import choose_tokens, draw_tokens, sample_ids, token_probabilities
from npformer.models.gpt import GPT, GPTConfig

SIZES = {"vocab_size": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "context": 12}
LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False, "tied": False}
OPTIONS = {
    "learned positions": {},
    "rotary, grouped queries": {**LLAMA, "n_kv_heads": 2},
    "rotary, multi-query, interleaved": {**LLAMA, "n_kv_heads": 1, "rotary_layout": "interleaved"},
    "window": {"window": 3, "n_kv_heads": 2},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
LOGITS = np.log([[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]])
PROMPTS = [[1, 2, 3, 4, 5], [6], [7, 8, 9]]  # of different lengths


def tiny(**changes):
    """Return a small model whose weights are larger than the initial ones, so that its tokens vary."""
    model = GPT(GPTConfig(**(SIZES | changes)), rng=np.random.default_rng(0), dtype=np.float64)
    model.values += 0.4 * np.random.default_rng(1).standard_normal(model.values.shape)
    return model


def sampled(model, prompts, n_tokens, **settings):
    """Return the tokens after each prompt, of shape (B, n_tokens)."""
    return np.stack(list(sample_ids(model, prompts, n_tokens, **settings)), 1)


def last_logits(model, text):
    """Return the logits after a text, computed without a KV cache."""
    return model.forward([text])[0][0, -1]


# Probabilities


def test_the_temperature_is_an_exponent():
    p = np.exp(LOGITS)
    for temperature in (0.5, 1.0, 3.0):
        expected = p ** (1 / temperature)
        expected /= expected.sum(-1, keepdims=True)
        actual = token_probabilities(LOGITS, temperature=temperature)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_top_k_keeps_the_k_most_probable_tokens():
    p = token_probabilities(LOGITS, top_k=2)
    np.testing.assert_allclose(p, [[2 / 3, 1 / 3, 0, 0], [0, 0, 3 / 7, 4 / 7]], rtol=1e-12)
    of_equal_ones = token_probabilities(LOGITS, top_k=3)
    np.testing.assert_array_equal(of_equal_ones > 0, [[True, True, True, False], [False, True, True, True]])
    np.testing.assert_array_equal(token_probabilities(LOGITS, top_k=9), token_probabilities(LOGITS, top_k=4))
    few_values = np.random.default_rng(0).integers(0, 3, (1, 1000)).astype(float)
    kept = np.flatnonzero(token_probabilities(few_values, top_k=500))
    np.testing.assert_array_equal(kept, np.sort(np.argsort(-few_values[0], kind="stable")[:500]))


@pytest.mark.parametrize(
    ("top_p", "numbers"), [(0.01, (1, 1)), (0.45, (1, 2)), (0.55, (2, 2)), (0.8, (3, 3)), (1.0, (4, 4))]
)
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p, numbers):
    p = token_probabilities(LOGITS, top_p=top_p)
    for row, kept, number in zip(np.exp(LOGITS), p > 0, numbers, strict=True):
        assert kept.sum() == number
        sums = [sum(chosen) for n in range(1, 5) for chosen in itertools.combinations(row, n)]
        sizes = [n for n in range(1, 5) for _ in itertools.combinations(row, n)]
        assert number == min(n for n, total in zip(sizes, sums, strict=True) if total >= top_p - 1e-12)
        assert row[kept].min() >= row[~kept].max(initial=0)  # the most probable ones
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-12)


def test_extreme_logits_and_temperatures():
    np.testing.assert_array_equal(token_probabilities([[1e300, -1e300, 0]]), [[1, 0, 0]])
    np.testing.assert_array_equal(token_probabilities([[1.0, 2.0, 0]], temperature=5e-324), [[0, 1, 0]])
    np.testing.assert_allclose(token_probabilities(LOGITS, temperature=1e300), np.full((2, 4), 0.25))
    with pytest.raises(UserError, match="the model's logits are not finite"):
        token_probabilities([[0.0, np.nan]])


# Draws


@pytest.mark.parametrize("settings", [{}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.8}])
def test_draws_have_these_probabilities(settings):
    """The statistic of the chi-square test is below the 99.9 % quantile, which is 16.3 for 3 degrees."""
    n = 20_000
    for row in LOGITS:
        p = token_probabilities(row[None], **settings)[0]
        drawn = choose_tokens(np.tile(row, (n, 1)), np.random.default_rng(0), **settings)
        counts = np.bincount(drawn, minlength=4)
        assert not counts[p == 0].any()
        expected = n * p[p > 0]
        assert ((counts[p > 0] - expected) ** 2 / expected).sum() < 16.3


def test_a_draw_never_takes_a_token_without_probability():
    class LargestNumbers:
        """A generator that returns the ends of the interval from 0 to 1."""

        def random(self, shape):
            return np.array([[0.0], [np.nextafter(1, 0)]])

    p = np.array([[0, 0.5, 0.5, 0], [0.1, 0.2, 0.7, 0]])
    np.testing.assert_array_equal(draw_tokens(p, LargestNumbers()), [1, 2])


@pytest.mark.parametrize("settings", [{"temperature": 3.0}, {"top_k": 3}, {"top_p": 0.9}, {"seed": 5}])
def test_a_setting_of_sampling_draws_without_a_generator(settings):
    texts = {tuple(sampled(tiny(), [[1]], 20, **settings)[0].tolist()) for _ in range(3)}
    assert tuple(sampled(tiny(), [[1]], 20)[0].tolist()) not in texts
    assert len(texts) == (1 if "seed" in settings else 3)
    if "seed" in settings:
        with_rng = sampled(tiny(), [[1]], 20, rng=np.random.default_rng(settings["seed"]))[0]
        assert texts == {tuple(with_rng.tolist())}
    else:
        assert len({*choose_tokens(np.zeros((200, 11)), **settings).tolist()}) > 2


# Texts


@every_option
def test_prompts_of_different_lengths_are_continued_as_one_by_one(options):
    """The texts are longer than the context, so each of them is shortened at a step of its own."""
    model = tiny(**options)
    together = sampled(model, PROMPTS, 30)
    for prompt, tokens in zip(PROMPTS, together, strict=True):
        np.testing.assert_array_equal(tokens, sampled(model, [prompt], 30)[0])
    assert len(np.unique(together)) > 2


@pytest.mark.parametrize("context", [1, 2, 5])
def test_a_full_context_goes_on_with_its_last_half(context):
    model = tiny(context=context)
    tokens, text = sampled(model, [[3]], 4 * context)[0], [3]
    for token in tokens:
        if len(text) > context:
            text = text[-max(1, context // 2) :]
        assert token == last_logits(model, text).argmax()
        text.append(token)


def test_tokens_are_yielded_one_after_another():
    """The model reads the prompt when the first token is wanted, and one token for each further one."""
    model, shapes = tiny(), []
    step = model.decode_step

    def watched(ids, *others, **settings):
        shapes.append(np.shape(ids))
        return step(ids, *others, **settings)

    model.decode_step = watched
    tokens = sample_ids(model, [[1, 2, 3], [4, 5, 6]], 4)
    assert shapes == []
    next(tokens)
    next(tokens)
    assert shapes == [(2, 3), (2,)]
    assert len(list(tokens)) == 2
    assert shapes == [(2, 3), (2,), (2,), (2,)]


@pytest.mark.parametrize(
    ("prompts", "settings", "message"),
    [
        (
            [[1]],
            {"temperature": 0.0},
            "temperature is 0.0: it must be a number above 0; leave out all settings",
        ),
        ([[1]], {"temperature": -1.0}, "temperature is -1.0"),
        ([[1]], {"temperature": float("nan")}, "temperature is nan"),
        ([[1]], {"temperature": np.inf}, "temperature is inf"),
        ([[1]], {"temperature": "hot"}, "temperature is 'hot': it must be a number above 0"),
        ([[1]], {"temperature": True}, "temperature is True: it must be a number above 0"),
        ([[1]], {"top_k": 0}, "top_k is 0: it must be a whole number, 1 or more"),
        ([[1]], {"top_k": 2.5}, "top_k is 2.5: it must be a whole number, 1 or more"),
        ([[1]], {"top_p": "0.9"}, "top_p is '0.9': it must be a number above 0 and at most 1"),
        ([[1]], {"seed": -1}, "seed is -1: it must be a whole number, 0 or more"),
        ([[1]], {"seed": "a"}, "seed is 'a': it must be a whole number, 0 or more"),
        ([[1]], {"rng": 3}, r"rng is 3: give a generator, such as np.random.default_rng\(0\), or a seed"),
        ([[1]], {"rng": np.random.default_rng(0), "seed": 3}, "seed is 3 and there is an rng, too: give one"),
        ([[1]], {"n_tokens": "5"}, "n_tokens is '5': it must be a whole number, 1 or more"),
        ([[1]], {"n_tokens": 2.0}, "n_tokens is 2.0: it must be a whole number, 1 or more"),
        ([[1]], {"top_p": 0.0}, "top_p is 0.0: it must be a number above 0 and at most 1"),
        ([[1]], {"top_p": 1.1}, "top_p is 1.1: it must be a number above 0 and at most 1"),
        ([[1]], {"n_tokens": 0}, "n_tokens is 0: it must be a whole number, 1 or more"),
        ([1, 2], {}, "a prompt is 1: give a list of whole numbers"),
        ([[1.9, 2]], {}, r"a prompt is \[1.9, 2\]: give a list of whole numbers"),
        ([], {}, "there is no prompt: give at least one"),
        ([[1], []], {}, "prompt 2 is empty: give at least one token"),
        ([[1], [1] * 13], {}, "prompt 2 has 13 tokens, and the model reads 12 at most: shorten it"),
    ],
)
def test_impossible_settings_are_refused_before_the_first_token(prompts, settings, message):
    with pytest.raises(UserError, match=message):
        sample_ids(tiny(), prompts, **({"n_tokens": 2} | settings))


@every_option
def test_a_model_on_the_gpu_samples_the_same_tokens(options, monkeypatch):
    expected = sampled(tiny(**options), PROMPTS, 20, rng=np.random.default_rng(0))
    strict_cupy.install(monkeypatch)
    model = tiny(**options).to("cupy")
    tokens = list(sample_ids(model, PROMPTS, 20, rng=np.random.default_rng(0)))
    assert all(type(array) is np.ndarray for array in tokens)
    np.testing.assert_array_equal(np.stack(tokens, 1), expected)
