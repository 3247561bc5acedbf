"""Greedy search: the most probable word at each position."""

import numpy as np
import pytest
import strict_cupy
from test_decoding_state import CONFIGS, SMALL, UNTIED, every_config, random_model, random_source

from npformer.data import END, PAD, START, UNK
from npformer.decoding import greedy
from npformer.transformer import TransformerConfig


def by_hand(model, sentence, max_length):
    """The definition, for one sentence without padding: the model run anew for each word."""
    ids: list[int] = []
    while len(ids) < max_length:
        logits, _ = model.forward(np.array([sentence]), np.array([[START, *ids]]))
        logits[..., [PAD, UNK, START]] = -np.inf
        word = int(logits[0, -1].argmax())
        if word == END:
            break
        ids.append(word)
    return ids


def model_with_bias(**biases):
    """A model that prefers the words word_<id> by that much."""
    model = random_model(TransformerConfig(**UNTIED, **SMALL))
    for name, bias in biases.items():
        model.output.bias.value[int(name.removeprefix("word_"))] = bias
    return model


@every_config
@pytest.mark.parametrize("seed", [1, 2])
def test_the_cache_changes_nothing(config, seed):
    model, source = random_model(config, seed), random_source(config, seed=seed)
    assert greedy(model, source, max_length=9) == greedy(model, source, max_length=9, cached=False)


@every_config
def test_a_batch_is_its_sentences_one_by_one(config):
    model, source = random_model(config, 3), random_source(config)
    sentences = [[word for word in row if word != PAD] for row in source.tolist()]
    assert greedy(model, source, max_length=8) == [by_hand(model, sentence, 8) for sentence in sentences]


def test_outputs_differ_and_end_at_different_times():
    """Else the tests here would show little."""
    found = []
    for config in CONFIGS.values():
        for seed in (1, 2):
            found += greedy(random_model(config, seed), random_source(config, seed=seed), max_length=9)
    assert len(set(map(len, found))) > 5
    assert len(set(map(tuple, found))) > len(found) / 3
    assert sum(len(set(ids)) > 2 for ids in found) > len(found) / 6


def test_finished_sentences_leave_the_batch():
    config = CONFIGS["datawhale"]
    for seed in range(6):
        model, source = random_model(config, seed), random_source(config)
        rows, step = [], model.step
        model.step = lambda ids, *rest, step=step, rows=rows: rows.append(len(ids)) or step(ids, *rest)
        lengths = [len(ids) for ids in greedy(model, source, max_length=9)]
        # a sentence of n words takes n steps and one for its end, unless the limit ends it; it leaves with
        # the others that have ended, as soon as these are a quarter of the rows
        expected = [len(source)]
        for t in range(1, max(min(n + 1, 9) for n in lengths)):
            live = sum(min(n + 1, 9) > t for n in lengths)
            expected.append(live if live <= 0.75 * expected[-1] else expected[-1])
        assert rows == expected


def test_padding_start_and_unknown_are_never_chosen():
    model = model_with_bias(word_0=900.0, word_1=800.0, word_2=900.0)
    source = random_source(model.config)
    for cached in (True, False):
        found = greedy(model, source, max_length=6, cached=cached)
        assert not {PAD, UNK, START, END} & {word for ids in found for word in ids}
        assert any(found)
    assert greedy(model, source, max_length=6, allow_unk=True) == [[UNK] * 6] * 6


def test_ends():
    never = model_with_bias(word_3=-900.0)
    source = random_source(never.config, (2, 7))
    assert [len(ids) for ids in greedy(never, source, max_length=4)] == [4, 4]
    assert [len(ids) for ids in greedy(never, source)] == [53, 58]  # each source, its end and 50 more
    at_once = model_with_bias(word_3=900.0)
    assert greedy(at_once, source) == [[], []]


def test_as_long_as_the_model_can():
    for config in (CONFIGS["jianshu-demo"], CONFIGS["paper-E-learned"].replace(max_length=10)):
        model = random_model(config.replace(tied="none", output_bias=True))
        model.output.bias.value[END] = -900.0
        for cached in (True, False):
            assert [len(ids) for ids in greedy(model, random_source(config), cached=cached)] == [9] * 6


def test_of_equal_words_the_first():
    model = model_with_bias(word_3=-1.0)
    model.output.weight.value[...] = 0
    model.output.bias.value[4:] = 0
    assert greedy(model, random_source(model.config, (3,)), max_length=3) == [[4, 4, 4]]


def test_on_the_gpu(monkeypatch):
    config = CONFIGS["tensor2tensor"]
    model, source = random_model(config), random_source(config)
    expected = greedy(model, source, max_length=9)
    cupy = strict_cupy.install(monkeypatch)
    model.to("cupy")
    assert greedy(model, source, max_length=9) == expected
    assert greedy(model, source, max_length=9, cached=False) == expected
    assert greedy(model, cupy.asarray(source), max_length=9) == expected
