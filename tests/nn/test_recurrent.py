"""LSTM and GRU: against PyTorch, with padding, and in parts."""

import numpy as np
import pytest
from golden import assert_close, golden, named

from npformer.errors import UserError
from npformer.nn import Bidirectional, Recurrent
from npformer.nn.recurrent import KINDS

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 5, 3))
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_layer(kind, make=Recurrent, **settings):
    """Return a small float64 layer with biases that are not 0."""
    layer = make(3, 4, kind=kind, rng=np.random.default_rng(1), dtype=np.float64, **settings)
    for parameter in layer.parameters():
        parameter.value += 0.1 * np.random.default_rng(2).standard_normal(parameter.shape)
    return layer


@every_kind
@pytest.mark.parametrize("side", ["one", "both"])
def test_it_equals_pytorchs_layer(kind, side):
    """Compare the states at every token, and the gradients of the input and of every parameter."""
    arrays = golden(f"{kind}/{side}")
    make = Bidirectional if side == "both" else Recurrent
    layer = make(5, 4, kind=kind, dtype=np.float64)
    layer.load_state_dict(named(arrays, "value"))
    states, cache = layer.forward(arrays["x"], mask=arrays["mask"])
    shown = states if side == "both" else states[..., :4]
    assert_close(shown * arrays["mask"][..., None], arrays["y"])
    dstates = np.zeros_like(states)
    dstates[..., : arrays["dy"].shape[-1]] = arrays["dy"]
    assert_close(layer.backward(dstates, cache), arrays["dx"])
    for name, parameter in layer.named_parameters():
        assert_close(parameter.grad, named(arrays, "grad")[name])


@every_kind
def test_a_sentence_in_two_parts_equals_the_whole(kind):
    """The last state of one part is the first state of the next; gradients flow in the opposite direction."""
    layer = make_layer(kind)
    whole, cache = layer.forward(X)
    first, one = layer.forward(X[:, :2])
    second, two = layer.forward(X[:, 2:], first[:, -1])
    np.testing.assert_allclose(np.concatenate([first, second], 1), whole, rtol=1e-13)
    dstates = rng.standard_normal(whole.shape)
    dwhole = layer.backward(dstates, cache)
    dsecond, dstate = layer.backward(dstates[:, 2:], two)
    dpiece = dstates[:, :2].copy()
    dpiece[:, -1] += dstate
    np.testing.assert_allclose(np.concatenate([layer.backward(dpiece, one), dsecond], 1), dwhole, rtol=1e-11)


@every_kind
def test_all_biases_begin_at_0_by_default(kind):
    layer = Bidirectional(3, 4, kind=kind)
    assert not any(p.value.any() for name, p in layer.named_parameters() if name.endswith("bias"))
    assert not Recurrent(3, 4, kind=kind).input_projection.bias.value.any()


def test_an_unknown_kind_is_refused():
    with pytest.raises(UserError, match="kind is 'rnn': choose one of lstm, gru"):
        Recurrent(3, 4, kind="rnn")
