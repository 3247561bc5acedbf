"""Going on: greedy and drawn, with kept keys and values and without."""

import numpy as np
import pytest
from tiny import tiny_model

from npformer.data import END, PAD, START, UNK, TextCodec
from npformer.decoding import continuations, continue_text
from npformer.errors import UserError
from npformer.transformer import NextWordModel

OPTIONS = {
    "post-norm": {},
    "pre-norm, fused": {"norm": "pre", "final_norm": True, "fused_projections": True},
    "tied, learned": {"tied": "output", "positions": "learned"},
}


def model(**changes):
    return tiny_model(kind=NextWordModel, source_vocab=9, **changes)


def probabilities(made, words):
    """p(next word | words), the words that may come alone, not scaled up to 1."""
    logits = made.forward([[START, *words]])[0][0, -1]
    p = np.exp(logits) / np.exp(logits).sum()
    p[[PAD, UNK, START]] = 0
    return p


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("beginning", [[], [5], [6, 7, 4]])
def test_kept_keys_and_values_write_the_same(options, beginning):
    made = model(**options)
    for settings in ({}, {"temperature": 2.0, "n": 5}):
        written = [
            continuations(
                made,
                beginning,
                rng=np.random.default_rng(3) if settings else None,
                max_words=8,
                cached=cached,
                **settings,
            )
            for cached in (True, False)
        ]
        assert written[0] == written[1]


def test_without_a_generator_each_word_is_the_likeliest():
    made, words = model(seed=4), [5]
    (written,) = continuations(made, [5], max_words=6)
    for word in [*written, END][:6]:
        assert word == probabilities(made, words).argmax()
        words.append(word)


def test_drawn_words_have_the_models_probabilities():
    made, n = model(), 4000
    for temperature in (0.5, 1.0, 2.0):
        drawn = continuations(
            made, [5], n, rng=np.random.default_rng(0), temperature=temperature, max_words=1
        )
        counts = np.bincount([words[0] if words else END for words in drawn], minlength=9)
        p = probabilities(made, [5]) ** (1 / temperature)
        p /= p.sum()
        assert not counts[p == 0].any()
        assert (np.abs(counts / n - p) < 4 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


def test_the_same_seed_draws_the_same_and_a_low_temperature_the_likeliest():
    made = model()
    first, again, other = (
        continuations(made, [5], 6, rng=np.random.default_rng(seed), max_words=6) for seed in (1, 1, 2)
    )
    assert first == again != other
    cold = continuations(made, [5], 2, rng=np.random.default_rng(1), temperature=1e-6, max_words=6)
    assert cold == continuations(made, [5], 2, max_words=6)


def test_it_stops_at_the_end_or_at_max_words():
    made = model()
    written = continuations(made, [], 60, rng=np.random.default_rng(0), temperature=3.0, max_words=5)
    assert {len(words) for words in written} == set(range(6))
    assert not set().union(*written) & {PAD, UNK, START, END}


def test_text_goes_on():
    codec = TextCodec.from_lines(["a b c d e"])
    (text,) = continue_text(model(), codec, "a b", max_words=4)
    assert text.startswith("a b")
    assert codec.encode(text)[2:] == continuations(model(), codec.encode("a b"), max_words=4)[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "n is 0: it must be 1 or more"),
        ({"temperature": 0.0}, r"temperature is 0.0: it must be above 0; for the likeliest words"),
        ({"max_words": 0}, "max_words is 0: after a beginning of 3 words give 1 to 9"),
        ({"max_words": 10}, "max_words is 10"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        continuations(model(), [4, 5, 6], **({"max_words": 2} | settings))


def test_the_longest_fills_the_model():
    settings = {"rng": np.random.default_rng(0), "temperature": 50.0, "max_words": 9}
    assert max(map(len, continuations(model(), [4, 5, 6], 40, **settings))) == 9
