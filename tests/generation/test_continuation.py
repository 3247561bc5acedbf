"""Continuation of texts: greedy and sampled, with and without a KV cache."""

import numpy as np
import pytest
from tiny import tiny_model

from npformer.data import END, PAD, START, UNK, TextCodec
from npformer.errors import UserError
from npformer.generation import continuations, continue_text
from npformer.models.transformer.language_model import CausalLanguageModel

OPTIONS = {
    "post-norm": {},
    "pre-norm, fused": {"norm": "pre", "final_norm": True, "fused_projections": True},
    "tied, learned": {"tied": "output", "positions": "learned"},
}


def make_model(**changes):
    return tiny_model(kind=CausalLanguageModel, source_vocab=9, **changes)


def probabilities(model, tokens):
    """Return p(next token | tokens), with 0 for forbidden tokens; the others are not rescaled."""
    logits = model.forward([[START, *tokens]])[0][0, -1]
    p = np.exp(logits) / np.exp(logits).sum()
    p[[PAD, UNK, START]] = 0
    return p


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("beginning", [[], [5], [6, 7, 4]])
def test_the_kv_cache_does_not_change_the_text(options, beginning):
    model = make_model(**options)
    for settings in ({}, {"temperature": 2.0, "n": 5}):
        outputs = [
            continuations(
                model,
                beginning,
                rng=np.random.default_rng(3) if settings else None,
                max_tokens=8,
                cached=cached,
                **settings,
            )
            for cached in (True, False)
        ]
        assert outputs[0] == outputs[1]


def test_without_a_generator_each_token_is_the_most_probable():
    model, tokens = make_model(seed=4), [5]
    (continuation,) = continuations(model, [5], max_tokens=6)
    for token in [*continuation, END][:6]:
        assert token == probabilities(model, tokens).argmax()
        tokens.append(token)


def test_sampled_tokens_have_the_models_probabilities():
    model, n = make_model(), 4000
    for temperature in (0.5, 1.0, 2.0):
        drawn = continuations(
            model, [5], n, rng=np.random.default_rng(0), temperature=temperature, max_tokens=1
        )
        counts = np.bincount([tokens[0] if tokens else END for tokens in drawn], minlength=9)
        p = probabilities(model, [5]) ** (1 / temperature)
        p /= p.sum()
        assert not counts[p == 0].any()
        assert (np.abs(counts / n - p) < 4 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


def test_a_seed_gives_the_same_text_and_a_low_temperature_the_most_probable_one():
    model = make_model()
    first, again, other = (
        continuations(model, [5], 6, rng=np.random.default_rng(seed), max_tokens=6) for seed in (1, 1, 2)
    )
    assert first == again != other
    cold = continuations(model, [5], 2, rng=np.random.default_rng(1), temperature=1e-6, max_tokens=6)
    assert cold == continuations(model, [5], 2, max_tokens=6)


def test_it_stops_at_the_end_or_at_max_tokens():
    model = make_model()
    outputs = continuations(model, [], 60, rng=np.random.default_rng(0), temperature=3.0, max_tokens=5)
    assert {len(tokens) for tokens in outputs} == set(range(6))
    assert not set().union(*outputs) & {PAD, UNK, START, END}


def test_the_continuation_of_a_text():
    codec = TextCodec.from_lines(["a b c d e"])
    (text,) = continue_text(make_model(), codec, "a b", max_tokens=4)
    assert text.startswith("a b")
    assert codec.encode(text)[2:] == continuations(make_model(), codec.encode("a b"), max_tokens=4)[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "n is 0: it must be 1 or more"),
        ({"temperature": 0.0}, "temperature is 0.0: it must be above 0; leave out rng for the most probable"),
        ({"max_tokens": 0}, "max_tokens is 0: after a beginning of 3 tokens give 1 to 9"),
        ({"max_tokens": 10}, "max_tokens is 10"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        continuations(make_model(), [4, 5, 6], **({"max_tokens": 2} | settings))
