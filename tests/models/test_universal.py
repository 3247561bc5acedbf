"""The Universal Transformer: one repeated layer, halting at each position, and the ponder cost."""

import math
from itertools import pairwise

import numpy as np
import pytest
from tiny import tiny_config

from npformer import UserError
from npformer.functional.masks import causal_mask
from npformer.functional.positions import sinusoids
from npformer.models.registry import build
from npformer.models.transformer import Decoder, Encoder
from npformer.models.universal import UniversalConfig, UniversalDecoder, UniversalEncoder
from npformer.nn import Context

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((2, 5, 8)), rng.standard_normal((2, 4, 8))
WORDS = np.array([[True] * 5, [True] * 3 + [False] * 2])
MASK = WORDS[:, None, None]  # (B, 1, 1, S)
STEPS = 4
either = pytest.mark.parametrize("kind", [UniversalEncoder, UniversalDecoder])


def repeated(kind=UniversalEncoder, *, n_layers=STEPS, dtype=np.float64, settings=None, **halting):
    """Return one layer with random gains and biases; with a halting_bias it halts."""
    config = tiny_config(n_layers=n_layers, **(settings or {}))
    model = kind(config, halting=bool(halting), **halting, rng=np.random.default_rng(1), dtype=dtype)
    random = np.random.default_rng(2)
    for name, parameter in model.named_parameters():
        if parameter.value.ndim == 1 and not name.startswith("halting"):
            parameter.value += 0.3 * random.standard_normal(parameter.shape).astype(dtype)
    if halting:
        model.halting.weight.value *= 2  # so that positions differ
    return model


def run(model, **settings):
    """Return its output and cache, for an encoder or a decoder."""
    if isinstance(model, UniversalDecoder):
        return model.forward(Y, X, causal_mask(4, Y), MASK, **settings)
    return model.forward(X, MASK, **settings)


@either
def test_the_defaults_are_those_of_the_configuration_but_nothing_halts(kind):
    config, settings = tiny_config(n_layers=STEPS), UniversalConfig()
    assert kind(config).halting is None
    model = kind(config, halting=True)
    assert model.halting_epsilon == settings.halting_epsilon
    assert model.halting.bias.value == settings.halting_bias


def test_the_positions_are_added_by_the_stacks_and_not_by_the_embeddings():
    model = build(UniversalConfig(source_vocab=9, target_vocab=9, d_model=8, n_heads=2, d_ff=8, n_layers=1))
    assert model.source.positions is model.target.positions is None
    assert model.encoder.positions is not None


# Fixed steps.


@either
@pytest.mark.parametrize("settings", [{}, {"norm": "pre", "final_norm": True}], ids=str)
def test_without_halting_and_signals_it_is_a_stack_of_one_shared_layer(kind, settings):
    """Compare values, and gradients of inputs and of every parameter, which are summed over the layers."""
    settings = {"positions": "none", **settings}
    model = repeated(kind, settings=settings)
    stack = (Decoder if kind is UniversalDecoder else Encoder)(tiny_config(n_layers=1, **settings))
    stack.layers, stack.norm = [model.layer] * STEPS, model.norm
    outcomes = []
    for one in (model, stack):
        model.zero_grad()
        inputs = (Y, X, causal_mask(4, Y), MASK) if kind is UniversalDecoder else (X, MASK)
        y, cache = one.forward(*inputs)
        dx = one.backward(np.cos(y), cache)
        grads = [p.grad.copy() for p in model.parameters()]
        outcomes.append([y, *(dx if isinstance(dx, tuple) else (dx,)), *grads])
    for ours, theirs in zip(*outcomes, strict=True):
        assert theirs.any()
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_the_signals_are_added_before_every_step():
    """Equations 6 and 7: sin(i / 10000^2j/D) + sin(n / 10000^2j/D), and the same with cosines."""
    model = repeated()
    x = X
    for n in range(1, STEPS + 1):
        x = x.copy()
        for i, j in np.ndindex(5, 4):
            rate = 10000 ** (2 * j / 8)
            x[:, i, 2 * j] += math.sin(i / rate) + math.sin(n / rate)
            x[:, i, 2 * j + 1] += math.cos(i / rate) + math.cos(n / rate)
        x, _ = model.layer.forward(x, MASK)
    np.testing.assert_allclose(run(model)[0], x, rtol=1e-12)


# Halting.


def act(model, token_mask):
    """Compute adaptive computation time by the paper's pseudocode, one position at a time.

    Returns (y, N, ponder).
    """
    shape, state = X.shape[:2], X
    spent, n_steps, remainders, y = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(X.shape)
    running = {place for place in np.ndindex(shape) if token_mask[place]}
    for n in range(1, model.n_steps + 1):
        signals = sinusoids(5, 8) + sinusoids(n + 1, 8)[n]
        new, _ = model.layer.forward(state + signals, MASK)
        state = state.copy()
        for place in sorted(running):
            state[place] = new[place]
            logit = new[place] @ model.halting.weight.value[:, 0] + model.halting.bias.value[0]
            p = 1 / (1 + math.exp(-logit))
            n_steps[place] += 1
            if spent[place] + p >= 1 - model.halting_epsilon or n == model.n_steps:
                remainders[place] = 1 - spent[place]
                y[place] += remainders[place] * new[place]
                running.remove(place)
            else:
                spent[place] += p
                y[place] += p * new[place]
    return y, n_steps, n_steps + remainders


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 1), (0.49, 2)])
def test_a_position_halts_as_soon_as_the_sum_reaches_1_minus_epsilon(epsilon, steps):
    model = repeated(halting_bias=0, halting_epsilon=epsilon)
    model.halting.weight.value[...] = 0  # so that every probability is 1/2, exactly
    assert (run(model)[1].mix.steps == steps).all()


@pytest.mark.parametrize("bias", [-2.0, -0.5, 0.5])
@pytest.mark.parametrize("token_mask", [None, WORDS], ids=["all", "token_mask"])
def test_halting_is_that_of_the_paper(bias, token_mask):
    model = repeated(halting_bias=bias)
    y, cache = run(model, token_mask=token_mask)
    expected, n_steps, ponder = act(model, np.ones((2, 5), bool) if token_mask is None else token_mask)
    np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(cache.mix.steps, n_steps)
    np.testing.assert_allclose(cache.ponder, ponder, rtol=1e-11)


def test_it_ends_as_soon_as_all_positions_have_halted():
    model = repeated(n_layers=9, halting_bias=4.0)
    _, cache = run(model)
    assert len(cache.steps) == cache.mix.steps.max() < 9


def test_padding_takes_no_step_and_changes_nothing():
    model = repeated(halting_bias=-0.5)
    y, cache = run(model, token_mask=WORDS)
    assert not y[~WORDS].any()
    assert not cache.ponder[~WORDS].any()
    alone, its_cache = model.forward(X[1:, :3])
    np.testing.assert_allclose(y[1, :3], alone[0], rtol=1e-12)
    np.testing.assert_array_equal(cache.mix.steps[1, :3], its_cache.mix.steps[0])
    dx = model.backward(np.ones_like(y), cache, dponder=np.ones((2, 5)))
    assert not dx[~WORDS].any()


@pytest.mark.parametrize("bias", [None, -2.0, -0.5, 0.5, 60.0])
@pytest.mark.parametrize("settings", [{}, {"norm": "pre", "final_norm": True}], ids=str)
@pytest.mark.parametrize("n_layers", [1, STEPS])
def test_decoding_step_by_step_gives_the_rows_of_the_whole_sentence(bias, settings, n_layers):
    halting = {} if bias is None else {"halting_bias": bias}
    model = repeated(UniversalDecoder, n_layers=n_layers, settings=settings, **halting)
    whole, _ = run(model)
    memory, kv_cache, rows = model.project_memory(X), None, []
    for t in range(4):
        y, kv_cache = model.decode_step(Y[:, t : t + 1], kv_cache, memory, MASK)
        rows.append(y)
    np.testing.assert_allclose(np.concatenate(rows, 1), whole, rtol=1e-10)


@either
def test_every_step_draws_its_own_dropout(kind):
    model = repeated(kind, settings={"dropout": 0.5})
    _, cache = run(model, context=Context(train=True, rng=np.random.default_rng(3)))
    dropout_masks = [layer.norm1.dropout_mask.kept for layer in cache.layers]
    assert all((one != other).any() for one, other in pairwise(dropout_masks))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (
            lambda: repeated(settings={"positions": "learned"}),
            "positions is 'learned': a Universal Transformer",
        ),
        (
            lambda: repeated(settings={"positions": "relative"}),
            "choose one of interleaved, halves, jianshu, marian, or",
        ),
        (
            lambda: repeated(halting_bias=0, halting_epsilon=0),
            "halting_epsilon is 0: it must be above 0 and below 1",
        ),
        (
            lambda: repeated(halting_bias=0, halting_epsilon=math.nan),
            "halting_epsilon is nan: it must be above 0",
        ),
        (lambda: repeated(halting_bias="large"), "halting_bias is 'large': it must be a finite number"),
        (lambda: repeated(halting_bias=math.inf), "halting_bias is inf: it must be a finite number"),
        (
            lambda: repeated().forward(X, token_mask=WORDS[:, :4]),
            r"mask has shape \(2, 4\) and the tokens \(2, 5\)",
        ),
        (lambda: repeated().forward(X, token_mask=WORDS * 1), "mask has dtype int64: make it bool"),
    ],
)
def test_invalid_inputs_are_refused(mistake, message):
    with pytest.raises(UserError, match=message):
        mistake()
