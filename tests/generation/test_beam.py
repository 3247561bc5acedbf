"""Beam search: a beam of 1 is greedy search, and a beam of all sequences finds the best of all."""

import itertools

import numpy as np
import pytest
import strict_cupy
from decoding_models import CONFIGS, SMALL, model_with_bias, random_model, random_source

from npformer.data import END, PAD, START, UNK
from npformer.errors import UserError
from npformer.generation import beam_search, greedy
from npformer.generation.beam import RULES, SentenceSearch
from npformer.generation.search import NextTokens
from npformer.models.transformer import TransformerConfig

TINY = TransformerConfig(**(SMALL | {"source_vocab": 8, "target_vocab": 8}))  # four tokens: 4 to 7
TOKENS = range(4, 8)


def log_probs_of(model, sentence, outputs):
    """Return log p(y, end | source) of outputs y of one length, from one run of the whole model."""
    target = np.array([[START, *ids] for ids in outputs])
    logits, _ = model.forward(np.tile(sentence, (len(outputs), 1)), target)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ends = np.array([[*ids, END] for ids in outputs])
    return np.take_along_axis(log_p, ends[..., None], -1).sum((1, 2)).tolist()


def score_of(log_prob, ids, length_penalty):
    """Return log p / ((5 + n) / 6)^length_penalty, where n counts the end symbol."""
    return log_prob / ((5 + len(ids) + 1) / 6) ** length_penalty


def every_output(model, sentence, max_length, length_penalty):
    """Return pairs (score, ids) of all outputs of up to max_length tokens, best first."""
    found = []
    for length in range(max_length + 1):
        outputs = [list(ids) for ids in itertools.product(TOKENS, repeat=length)]
        log_probs = log_probs_of(model, sentence, outputs)
        found += [(score_of(p, y, length_penalty), y) for p, y in zip(log_probs, outputs, strict=True)]
    return sorted(found, key=lambda pair: -pair[0])


def assert_same(found, expected):
    """Compare hypotheses with pairs (score, ids)."""
    assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
    np.testing.assert_allclose([h.score for h in found], [score for score, _ in expected], rtol=1e-11)


def test_a_beam_that_holds_all_sequences_finds_them_in_order():
    """The best ones differ from those of greedy search, and from each other in length."""
    differ, lengths = 0, []
    for seed, length_penalty in enumerate((0.0, 0.6, 2.0)):
        model, source = random_model(TINY, seed, sharpness=3.0), random_source(TINY, (4, 2), seed)
        settings = {"length_penalty": length_penalty, "max_length": 4}
        sentences = [row[row != PAD] for row in source]
        expected = [every_output(model, sentence, 4, length_penalty) for sentence in sentences]
        n = len(expected[0])
        assert n == 1 + 4 + 16 + 64 + 256
        found = beam_search(model, source, beam=n, **settings)
        for hypotheses, best in zip(found, expected, strict=True):
            assert_same(hypotheses, best)
        assert beam_search(model, source, beam=2 * n, **settings) == found  # a wider beam gives the same
        best = [hypotheses[0].ids for hypotheses in found]
        differ += sum(a != b for a, b in zip(best, greedy(model, source, max_length=4), strict=True))
        lengths += map(len, best)
    assert differ > len(lengths) / 3
    assert len(set(lengths)) > 2


def test_the_search_stops_early():
    model = model_with_bias(token_3=2.0)
    model.output.weight.value[...] = 0
    model.output.bias.value[4:] = 0
    trace: list = []
    found = beam_search(model, random_source(model.config), beam=3, length_penalty=0.0, trace=trace)
    assert [[h.ids for h in hypotheses] for hypotheses in found] == [[[], [4], [5]]] * 6
    assert {len(steps) for steps in trace} == {2}  # fewer than the 52 or more steps that the limit allows


def test_a_hypothesis_with_a_low_score_may_still_win():
    """One token has a low probability, but all later ones are certain: the length improves the score."""
    search = SentenceSearch(END, beam=2, length_penalty=1.0, limit=10)
    log_probs = np.full((12, 1, 5), -np.inf)  # of each step, for one live hypothesis
    log_probs[:, 0, [END, 4]] = [
        np.log([0.9, 0.1]),
        np.log([0.55, 0.45]),
        *[[-9.0, 0.0]] * 8,
        *[[0.0, -9.0]] * 2,
    ]
    for log_prob in log_probs:
        if search.live:
            search.advance(NextTokens(np.arange(5)[None], log_prob, log_prob[:, END]))
    assert [h.ids for h in search.finished] == [[], [4] * 10]
    assert search.finished[1].log_prob == pytest.approx(np.log(0.1 * 0.45))


def test_a_minimum_length():
    config = CONFIGS["paper-base"]
    model, source = random_model(config, 8, sharpness=3.0), random_source(config)
    for min_length in (1, 3):
        for hypotheses in beam_search(model, source, beam=4, max_length=5, min_length=min_length):
            assert len(hypotheses) == 4
            assert all(min_length <= len(h.ids) <= 5 for h in hypotheses)
        found = [h.ids for h, *_ in beam_search(model, source, beam=1, max_length=5, min_length=min_length)]
        assert found == greedy(model, source, max_length=5, min_length=min_length)
    assert all(len(h.ids) == 5 for h, *_ in beam_search(model, source, max_length=5, min_length=5))


def test_padding_start_and_unknown_are_never_chosen():
    model = model_with_bias(token_0=90.0, token_1=200.0, token_2=90.0)
    source = random_source(model.config)
    for row, hypotheses in zip(source, beam_search(model, source, max_length=5), strict=True):
        for ids, log_prob, _ in hypotheses:
            assert not {PAD, UNK, START, END} & set(ids)
            assert log_prob == pytest.approx(*log_probs_of(model, row, [ids]), rel=1e-11)
    best = beam_search(model, source, max_length=3, allow_unk=True)
    assert [hypotheses[0].ids for hypotheses in best] == [[UNK] * 3] * 6


def test_the_first_token_can_be_given():
    """Check that only the given tokens come first, with the probabilities that the model gives them."""
    model = model_with_bias(token_5=90.0)
    source = random_source(model.config)
    trace = []
    found = beam_search(model, source, beam=2, max_length=4, first=[6, 7], trace=trace)
    for row, hypotheses, steps in zip(source, found, trace, strict=True):
        assert {branch.token for branch in steps[0]} == {6, 7}
        assert {hypothesis.ids[0] for hypothesis in hypotheses} <= {6, 7}
        for ids, log_prob, _ in hypotheses:
            assert log_prob == pytest.approx(*log_probs_of(model, row, [ids]), rel=1e-11)
        assert hypotheses[0].ids[1:] == [5] * 3  # later tokens are free


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beam": 0}, "beam is 0"),
        ({"length_penalty": -0.5}, "length_penalty is -0.5"),
        ({"n_best": 0}, "n_best is 0: it must be a whole number, 1 or more"),
        ({"n_best": 5}, "n_best is 5: a beam of 4 finds 4 at most, so give a larger beam"),
        ({"n_best": True}, "n_best is True: it must be a whole number"),
        ({"beam": "3"}, "beam is '3': it must be a whole number"),
        ({"length_penalty": "1"}, "length_penalty is '1': it must be 0"),
        ({"min_length": -1}, "min_length is -1"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"rules": "fairseq"}, "rules is 'fairseq': choose one of paper, transformers"),
    ],
)
def test_invalid_settings(settings, message):
    with pytest.raises(UserError, match=message):
        beam_search(random_model(TINY), random_source(TINY, (3,)), **settings)


def test_on_the_gpu(monkeypatch):
    config = CONFIGS["tensor2tensor"]
    model, source = random_model(config, sharpness=4.0), random_source(config)
    expected = beam_search(model, source, max_length=7)
    strict_cupy.install(monkeypatch)
    model.to("cupy")
    for cached in (True, False):
        found = beam_search(model, source, max_length=7, cached=cached)
        for left, right in zip(found, expected, strict=True):
            assert_same(left, [(h.score, h.ids) for h in right])


def test_with_the_rules_of_transformers_finished_translations_leave_the_beam_its_width():
    """Of 4 candidates the best ends; the next two stay live, and the fourth is dropped."""
    search = RULES["transformers"](END, beam=2, length_penalty=1.0, limit=3)
    search.advance(
        NextTokens(np.array([[END, 4, 5, 6]]), np.array([[-0.5, -1.0, -2.0, -3.0]]), np.array([-0.5]))
    )
    assert [h.ids for h in search.finished] == [[]]
    assert [h.ids for h in search.live] == [[4], [5]]
    # the end symbol after the last token costs nothing, and the score is log p / n
    for _ in range(2):
        tokens = np.array([[4, 5]] * len(search.live))
        search.advance(NextTokens(tokens, np.full(tokens.shape, -1.0), np.full(len(tokens), -9.0)))
    search.advance(NextTokens(tokens, np.full(tokens.shape, -1.0), np.full(len(tokens), -9.0)))
    assert [(h.ids, h.score) for h in search.finished] == [([], -0.5), ([4, 4, 4], -3.0 / 4)]
    assert search.live == []
