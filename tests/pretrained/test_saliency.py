"""Saliency: gradient × input, complete integrated gradients, what is explained, and the table."""

import numpy as np
import pytest
from tiny_runs import CHARACTERS, CHECKPOINTS

import npformer
from npformer import UserError
from npformer.data.sentences import MASK
from npformer.models.gpt import GPT, GPTConfig
from npformer.pretrained import saliency
from npformer.pretrained.input_gradients import ScoredOutput, input_vectors, scores_and_gradients
from npformer.pretrained.saliency import POINTS, Saliency, gradient_times_input, integrated_gradients
from npformer.storage.checkpoint import save_checkpoint

GAP = f"the {MASK} sees a dog"
TEXTS = {"gpt": "the cat ate", "bert": GAP, "translator": "a man is riding"}


@pytest.fixture
def loaded(tmp_path):
    """Return a function that loads the tiny run of a kind, in float64."""

    def load(name):
        save_checkpoint(CHECKPOINTS[name](), tmp_path / "best.safetensors")
        return npformer.load(tmp_path, dtype="float64")

    return load


# The methods


@pytest.fixture
def gpt():
    rng = np.random.default_rng(0)
    sizes = {"vocab_size": 11, "d_model": 8, "n_layers": 2, "n_heads": 2, "context": 9}
    # without vectors of positions, the first norm divides by nearly 0 at the baseline
    model = GPT(GPTConfig(**sizes, positions="rotary", norm="rms"), rng=rng, dtype=np.float64)
    for parameter in model.parameters():
        parameter.value[...] += rng.normal(0, 0.3, parameter.shape)
    return model


IDS = [np.array([[4, 7, 4, 9, 5]])]


def test_gradient_times_input_is_a_derivative_in_the_length_of_each_vector(gpt):
    """a_t is the derivative of f for a factor of the vector x_t alone, at the factor 1."""
    output, step = ScoredOutput(4, 3), 1e-5
    (vectors,) = input_vectors(gpt, IDS)
    found = gradient_times_input(gpt, IDS, output)
    assert found.baseline is None
    for place in range(5):
        factors = np.ones((2, 5, 1))
        factors[:, place, 0] += step, -step
        values, _ = scores_and_gradients(gpt, IDS, [factors * vectors], output)
        expected = (values[0] - values[1]) / (2 * step)
        assert found.scores[0][place] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-4, 1e-8])
def test_integrated_gradients_are_complete_to_the_tolerance(gpt, tolerance):
    found = integrated_gradients(gpt, IDS, ScoredOutput(4, 3), tolerance=tolerance, most_points=10_000)
    (vectors,) = input_vectors(gpt, IDS)
    ends = np.concatenate([0 * vectors, vectors])
    (baseline, value), _ = scores_and_gradients(gpt, IDS, [ends], ScoredOutput(4, 3))
    assert (found.value, found.baseline) == (pytest.approx(value, 1e-12), pytest.approx(baseline, 1e-12))
    assert abs(value - baseline) > 1  # far more than the tolerance
    assert abs(found.scores[0].sum() - (value - baseline)) <= tolerance


def test_more_points_are_used_where_the_tolerance_needs_them(gpt, monkeypatch):
    pieces, real = [], saliency._integrate
    monkeypatch.setattr(saliency, "_integrate", lambda *a: pieces.append(a[-2:]) or real(*a))

    def pieces_of(**settings):
        pieces.clear()
        assert np.isfinite(integrated_gradients(gpt, IDS, ScoredOutput(4, 3), **settings).scores[0]).all()
        return [*pieces]

    counts = [len(pieces_of(tolerance=tolerance)) for tolerance in (10.0, 1e-2, 1e-6)]
    assert counts == sorted(counts)
    assert counts[2] > counts[0] == 1
    bounded = pieces_of(tolerance=1e-15, most_points=5 * POINTS)
    assert bounded[:3] == [(0, 1), (0, 0.5), (0.5, 1)]
    assert len(bounded) == 5
    for settings in ({"tolerance": 0}, {"most_points": POINTS - 1}):
        with pytest.raises(UserError, match="give a tolerance above 0 and at least 8 points"):
            integrated_gradients(gpt, IDS, ScoredOutput(4, 3), **settings)


# What is explained


def test_a_language_model_explains_the_next_token(loaded):
    model = loaded("gpt")
    found = model.saliency(TEXTS["gpt"], method="gradient")
    row = model.logits([CHARACTERS.encode(TEXTS["gpt"])])[0, -1]
    assert (found.position, found.explained) == (10, CHARACTERS.characters[row.argmax()])
    assert found.tokens == {"text": list(TEXTS["gpt"])}
    assert found.value == pytest.approx(row.max() - np.log(np.exp(row).sum()))
    earlier = model.saliency(TEXTS["gpt"], target="d", position=3, score="logit", method="gradient")
    logits = model.logits([CHARACTERS.encode(TEXTS["gpt"])])[0, 3]
    assert (earlier.explained, earlier.value) == ("d", logits[CHARACTERS.encode("d")[0]])
    assert not earlier.scores["text"][4:].any()  # tokens that the causal mask hides
    assert earlier.scores["text"][:4].all()


def test_a_masked_language_model_explains_its_first_gap(loaded):
    model = loaded("bert")
    text = f"a {MASK} sees the {MASK}"
    found = model.saliency(text, method="gradient")
    gap = model.fill(text, k=1)[0]
    assert (found.position, found.explained) == (1, gap.words[0])
    assert np.exp(found.value) == pytest.approx(gap.probabilities[0])
    assert found.tokens == {"text": ["a", MASK, "sees", "the", MASK, "</S>"]}
    model.model.head.output.bias.value[:4] = 50  # special tokens are no words for a gap
    assert model.saliency(text, method="gradient").explained == gap.words[0]
    other = model.saliency(text, target="Dog", position=4, method="gradient")
    assert (other.position, other.explained) == (4, "dog")
    with pytest.raises(
        UserError, match=r"'the cat' has no \[MASK\]: write it in place of a word, or give a pos"
    ):
        model.saliency("the cat")
    assert model.saliency("the cat", position=1, target="dog", method="gradient").explained == "dog"


def test_a_translator_explains_a_token_of_its_translation(loaded):
    model = loaded("translator")
    maps = model.attention("a man", max_length=5)
    found = model.saliency("a man", position=2, method="gradient", max_length=5)
    assert found.explained == maps.predicted_tokens[2]
    assert found.tokens == {"source": maps.source_tokens, "target": maps.target_tokens}
    assert found.scores["source"].all()
    assert found.scores["target"][:3].all()
    assert not found.scores["target"][3:].any()  # the decoder does not read them before
    first = model.saliency("a man", method="gradient", max_length=5)
    assert (first.position, first.explained) == (0, maps.predicted_tokens[0])
    word = maps.predicted_tokens[-1]
    last = model.saliency("a man", target=word, method="gradient", max_length=5)
    assert last.position == maps.predicted_tokens.index(word)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("gpt", {"position": 11}, r"position is 11: there are 11 positions"),
        ("gpt", {"target": "dog"}, "the target 'dog' is 3 tokens of this model: give a text of one token"),
        ("bert", {"target": "zebra"}, "the vocabulary of this model lacks the target 'zebra'"),
        ("bert", {"method": "attention"}, "method is 'attention'"),
        ("translator", {"target": "zebra"}, "'zebra' is not a token of the translation: "),
        ("translator", {"position": 99}, r"position is 99: there are "),
    ],
)
def test_what_cannot_be_explained(name, settings, message, loaded):
    with pytest.raises(UserError, match=message):
        loaded(name).saliency(TEXTS[name], **settings)


# The table and the picture


def a_saliency(**changes):
    fields = {
        "explained": "dog",
        "position": 1,
        "score": "log-probability",
        "method": "integrated",
        "value": -0.25,
        "baseline": -2.0,
        "tokens": {"text": ["the", " ", "cat\n"]},
        "scores": {"text": np.array([1.5, -0.75, 1.0])},
    }
    return Saliency(**(fields | changes))


def test_the_table():
    assert a_saliency().table().splitlines() == [
        "log-probability -0.250 of dog: integrated gradients",
        "  the         +1.5000                      │████████████████████",
        "  ' '         -0.7500            ██████████│",
        r"  'cat\n'     +1.0000                      │█████████████",
        "sum +1.7500, and the score minus that of the baseline is +1.7500",
    ]


def test_the_picture_has_the_largest_contributions_in_the_order_of_the_text(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "npformer.plots.score_bars", lambda scores, words, names, title: drawn.append((scores, words, names))
    )
    scores = np.arange(100.0) * (-1) ** np.arange(100)
    a_saliency(tokens={"text": [f"w{n}" for n in range(100)]}, scores={"text": scores}).plot()
    ((values,), (words,), names) = drawn[0]
    assert words == [f"w{n}" for n in range(60, 100)]
    assert np.array_equal(values, scores[60:])
    assert names is None
