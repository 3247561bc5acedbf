"""The protocol of all components: arrays that backward may modify, repeated forward passes, and dtypes."""

import copy

import numpy as np
import pytest
from tiny import tiny_config

import npformer.functional as F
from npformer import MultiHeadAttention
from npformer.models.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    Transformer,
)
from npformer.nn import (
    Context,
    Dropout,
    Embedding,
    FeedForward,
    GatedFeedForward,
    InputEmbedding,
    LayerNorm,
    LearnedPositions,
    Linear,
    RMSNorm,
    RotaryPositions,
    TiedProjection,
)
from npformer.nn.module import Parameter
from npformer.nn.show import named_arrays
from npformer.training.optimizer import Adam


def x(rng, dtype, *shape):
    return rng.standard_normal(shape).astype(dtype)


def one(rng, dtype):
    return [x(rng, dtype, 2, 4, 8)]


def two(rng, dtype):
    return [x(rng, dtype, 2, 4, 8), x(rng, dtype, 2, 5, 8)]


def ids(rng, dtype):
    return [rng.integers(0, 9, (2, 4))]


def texts(rng, dtype):
    return [rng.integers(0, 11, (2, 5)), rng.integers(0, 9, (2, 4))]


def attention(**settings):
    return lambda dtype: MultiHeadAttention(8, 2, dtype=dtype, **settings)


POST, PRE = {"dropout": 0.2}, {"norm": "pre", "final_norm": True, "fused_projections": True}
JIANSHU = {"projection_activation": "relu", "query_masking": "after", "mask_fill": -4294967295.0}
LAYERS = {  # functions from a dtype to a layer, and from a generator and a dtype to its inputs
    "Linear": (lambda dtype: Linear(8, 5, dtype=dtype), one),
    "Linear without bias": (lambda dtype: Linear(8, 5, bias=False, dtype=dtype), one),
    "LayerNorm": (lambda dtype: LayerNorm(8, dtype=dtype), one),
    "RMSNorm": (lambda dtype: RMSNorm(8, dtype=dtype), one),
    "GatedFeedForward": (lambda dtype: GatedFeedForward(8, 12, dropout=0.2, dtype=dtype), one),
    "Embedding": (lambda dtype: Embedding(9, 8, scale=3.0, zero_id=0, dtype=dtype), ids),
    "TiedProjection": (
        lambda dtype: TiedProjection(Parameter(np.ones((5, 8), dtype)), bias=True, dtype=dtype),
        one,
    ),
    "InputEmbedding": (lambda dtype: InputEmbedding(9, 8, 6, dropout=0.2, dtype=dtype), ids),
    "InputEmbedding, learned": (
        lambda dtype: InputEmbedding(9, 8, 6, positions="learned", dtype=dtype),
        ids,
    ),
    **{
        f"FeedForward {name}": (
            lambda dtype, name=name: FeedForward(8, 12, activation=name, dropout=0.2, dtype=dtype),
            one,
        )
        for name in F.ACTIVATIONS
    },
    "self-attention": (attention(dropout=0.2), one),
    "self-attention, fused": (attention(fused="qkv"), one),
    "self-attention, rotary, grouped": (
        lambda dtype: attention(n_kv_heads=1, rotary=RotaryPositions(4, 4, dtype=dtype))(dtype),
        one,
    ),
    "cross-attention": (attention(activation="relu", output=False), two),
    "cross-attention, fused": (attention(fused="kv", bias=False), two),
    "EncoderLayer": (lambda dtype: EncoderLayer(tiny_config(**POST), dtype=dtype), one),
    "DecoderLayer": (lambda dtype: DecoderLayer(tiny_config(**PRE), dtype=dtype), two),
    "Encoder": (lambda dtype: Encoder(tiny_config(**PRE), dtype=dtype), one),
    "Decoder": (lambda dtype: Decoder(tiny_config(**POST), dtype=dtype), two),
    "EncoderDecoder": (
        lambda dtype: EncoderDecoder(
            Encoder(tiny_config(**PRE), dtype=dtype), Decoder(tiny_config(**PRE), dtype=dtype)
        ),
        two,
    ),
    "Transformer": (lambda dtype: Transformer(tiny_config(**POST), dtype=dtype), texts),
    "Transformer, pre": (lambda dtype: Transformer(tiny_config(**PRE), dtype=dtype), texts),
    "Transformer, jianshu": (lambda dtype: Transformer(tiny_config(**JIANSHU), dtype=dtype), texts),
}
TRAINS = (Dropout, InputEmbedding, FeedForward, GatedFeedForward, MultiHeadAttention)
TRAINS += (EncoderLayer, DecoderLayer, Encoder, Decoder, EncoderDecoder)
every_layer = pytest.mark.parametrize(("make", "inputs"), LAYERS.values(), ids=LAYERS)


def forward(layer, arrays, seed=0):
    """Run forward, with dropout if the layer has any."""
    context = Context(train=True, rng=np.random.default_rng(seed))
    if isinstance(layer, Transformer):
        return layer.forward(*arrays, train=True, rng=context.rng)
    return layer.forward(*arrays, context=context) if isinstance(layer, TRAINS) else layer.forward(*arrays)


def as_tuple(gradients):
    return () if gradients is None else gradients if isinstance(gradients, tuple) else (gradients,)


def parameter_grads(layer):
    return [parameter.grad.copy() for parameter in layer.parameters()]


@every_layer
def test_backward_modifies_neither_dy_nor_cache_nor_values(make, inputs):
    layer, rng = make(np.float64), np.random.default_rng(1)
    y, cache = forward(layer, inputs(rng, np.float64))
    dy = x(rng, np.float64, *y.shape)
    copies, dy_copy = copy.deepcopy(list(named_arrays((cache, y)))), dy.copy()
    values = copy.deepcopy([parameter.value for parameter in layer.parameters()])
    layer.backward(dy, cache)
    np.testing.assert_array_equal(dy, dy_copy)
    assert len(copies) > 1
    for (name, now), (_, before) in zip(named_arrays((cache, y)), copies, strict=True):
        np.testing.assert_array_equal(now, before, err_msg=name)
    for parameter, before in zip(layer.parameters(), values, strict=True):
        np.testing.assert_array_equal(parameter.value, before)


@every_layer
def test_forward_modifies_no_input(make, inputs):
    layer, arrays = make(np.float64), inputs(np.random.default_rng(1), np.float64)
    copies = copy.deepcopy(arrays)
    forward(layer, arrays)
    for array, before in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, before)


@every_layer
def test_two_forward_passes_before_two_backward_passes(make, inputs):
    """As with shared weights: the caches are independent, and the gradients are summed."""
    rng = np.random.default_rng(1)
    arrays = [inputs(rng, np.float64) for _ in range(2)]
    dys = [x(rng, np.float64, *forward(make(np.float64), arrays[0])[0].shape) for _ in range(2)]
    alone = []
    for seed in range(2):
        layer = make(np.float64)
        _, cache = forward(layer, arrays[seed], seed)
        alone.append((as_tuple(layer.backward(dys[seed], cache)), parameter_grads(layer)))
    layer = make(np.float64)
    caches = [forward(layer, arrays[seed], seed)[1] for seed in range(2)]
    for seed in (0, 1):
        returned = as_tuple(layer.backward(dys[seed], caches[seed]))
        assert len(returned) == len(alone[seed][0])
        for ours, expected in zip(returned, alone[seed][0], strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-12)
    for ours, first, second in zip(parameter_grads(layer), alone[0][1], alone[1][1], strict=True):
        np.testing.assert_allclose(ours, first + second, rtol=1e-9, atol=1e-14)
        assert ours.any()


@every_layer
def test_backward_twice_gives_the_same_and_doubles_the_gradients(make, inputs):
    layer, rng = make(np.float64), np.random.default_rng(1)
    y, cache = forward(layer, inputs(rng, np.float64))
    dy = x(rng, np.float64, *y.shape)
    first = as_tuple(layer.backward(dy, cache))
    once = parameter_grads(layer)
    for one_, two_ in zip(first, as_tuple(layer.backward(dy, cache)), strict=True):
        np.testing.assert_array_equal(one_, two_)
    for ours, before in zip(parameter_grads(layer), once, strict=True):
        np.testing.assert_allclose(ours, 2 * before, rtol=1e-14)


@every_layer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layers_keep_their_dtype(make, inputs, dtype):
    """Check the output, all arrays in the cache, the gradients, and the values after a step of Adam."""
    layer, rng = make(dtype), np.random.default_rng(1)
    adam = Adam(layer)
    y, cache = forward(layer, inputs(rng, dtype))
    returned = as_tuple(layer.backward(x(rng, dtype, *y.shape), cache))
    adam.step(1e-3)
    floats = [y, *returned, layer.values, layer.grads, *[array for _, array in named_arrays(cache)]]
    floats += [array for p in layer.parameters() for array in (p.value, p.grad)]
    assert {array.dtype for array in floats if array.dtype.kind not in "bi"} == {np.dtype(dtype)}


def test_learned_positions_use_one_table_in_all_calls():
    """Their input is a number, so they are tested separately."""
    layer = LearnedPositions(6, 3, dtype=np.float64)
    (_, first), (_, second) = layer.forward(2), layer.forward(3, start=1)
    layer.backward(np.ones((1, 2, 3)), first)
    layer.backward(np.ones((1, 3, 3)), second)
    assert layer.weight.grad[:, 0].tolist() == [1, 2, 1, 1, 0, 0]


# --- pure pairs ---


def logits(rng, dtype):
    q = rng.random((3, 5))
    return [x(rng, dtype, 3, 5), (q / q.sum(-1, keepdims=True)).astype(dtype)]


PAIRS = {
    **{name: (name, one, {}) for name in ("relu", "gelu", "gelu_tanh", "swish", "softmax", "log_softmax")},
    "layer_norm": ("layer_norm", lambda r, d: [x(r, d, 2, 4, 8), x(r, d, 8), x(r, d, 8)], {}),
    "rms_norm": ("rms_norm", lambda r, d: [x(r, d, 2, 4, 8), x(r, d, 8)], {}),
    **{name: (name, lambda r, d: [x(r, d, 2, 4, 8), x(r, d, 2, 4, 8)], {}) for name in ("swiglu", "geglu")},
    "rotate": ("rotate", lambda r, d: [x(r, d, 2, 3, 4, 8), x(r, d, 4, 4), x(r, d, 4, 4)], {}),
    "repeat_heads": ("repeat_heads", lambda r, d: [x(r, d, 2, 3, 4, 8)], {"n_repeats": 2}),
    "linear": ("linear", lambda r, d: [x(r, d, 2, 4, 8), x(r, d, 8, 3), x(r, d, 3)], {}),
    "embedding": ("embedding", lambda r, d: [r.integers(0, 5, (2, 4)), x(r, d, 5, 3)], {"scale": 1.5}),
    "cross_entropy": (
        "cross_entropy",
        lambda r, d: [x(r, d, 4, 5), np.array([0, 3, 0, 4])],
        {"smoothing": 0.1, "pad_id": 0},
    ),
    "kl_divergence": ("kl_divergence", logits, {}),
    "l2_distance": ("l2_distance", logits, {}),
    "attention": (
        "attention",
        lambda r, d: [x(r, d, 2, 4, 3), x(r, d, 2, 5, 3), x(r, d, 2, 5, 6), r.random((4, 5)) < 0.6],
        {},
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "inputs", "settings"), PAIRS.values(), ids=PAIRS)
def test_pairs_keep_dtypes_and_do_not_modify_inputs_dy_and_cache(name, inputs, settings, dtype):
    rng = np.random.default_rng(2)
    arrays = inputs(rng, dtype)
    y, cache = getattr(F, name)(*arrays, **settings)
    dy = x(rng, dtype, *y.shape) if y.shape else dtype(0.7)
    everything = (arrays, cache, dy)
    before = copy.deepcopy(everything)
    returned = as_tuple(getattr(F, f"{name}_backward")(dy, cache))
    assert {array.dtype for array in (y, *returned)} == {np.dtype(dtype)}
    for (where, now), (_, then) in zip(named_arrays(everything), named_arrays(before), strict=True):
        np.testing.assert_array_equal(now, then, err_msg=where)
