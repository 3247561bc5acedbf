"""Layers with the norm after each sum, before each sublayer, or where a sequence of letters says."""

import numpy as np
import pytest
from tiny import tiny_config

from npformer.errors import UserError
from npformer.models.transformer import (
    DecoderLayer,
    EncoderLayer,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    TransformerConfig,
    make_decoder_layer,
    make_encoder_layer,
)
from npformer.models.transformer.sequences import SequenceDecoderLayer
from npformer.nn import Context

rng = np.random.default_rng(0)
X, H, MEMORY = rng.standard_normal((3, 2, 3, 6))
F8 = {"dtype": np.float64}
SIZES = {"source_vocab": 9, "target_vocab": 9, "d_model": 6, "d_ff": 8, "n_heads": 2, "n_layers": 1}


def config_of(norm, **changes):
    """Return a configuration with a final norm where it needs one."""
    return TransformerConfig(**SIZES | {"norm": norm, "final_norm": norm[-1] not in "tn"} | changes)


def trained(layer, *inputs):
    """Return y, the gradients of the inputs and those of the parameters, with dropout."""
    for parameter in layer.parameters():
        parameter.value += 0.3 * np.random.default_rng(3).standard_normal(parameter.shape)
    y, cache = layer.forward(*inputs, context=Context(train=True, rng=np.random.default_rng(1)))
    return y, layer.backward(H, cache), [parameter.grad for parameter in layer.parameters()]


@pytest.mark.parametrize("make", [make_encoder_layer, make_decoder_layer])
@pytest.mark.parametrize(("sequence", "norm"), [("n-da", "pre"), ("-dan", "post")])
def test_the_named_layers_are_equal_to_their_sequences_to_the_bit(make, sequence, norm):
    inputs = (X, MEMORY) if make is make_decoder_layer else (X,)
    results = []
    for name in (sequence, norm):
        layer = make(config_of(name, dropout=0.3), rng=np.random.default_rng(2), **F8)
        results.append(trained(layer, *inputs))
    (y, dx, grads), (other, other_dx, other_grads) = results
    np.testing.assert_array_equal(y, other)
    np.testing.assert_array_equal(dx, other_dx)
    for one, another in zip(grads, other_grads, strict=True):
        np.testing.assert_array_equal(one, another)


def test_decoding_a_position_at_a_time_gives_the_whole_sentence():
    mask = np.tri(3, dtype=bool)
    for norm in ("post", "pre", "n-dna", "n-dan"):
        layer = make_decoder_layer(config_of(norm), rng=np.random.default_rng(0), **F8)
        whole, _ = layer.forward(X, MEMORY, mask)
        kv_cache, memory_kv = None, layer.project_memory(MEMORY)
        for t in range(3):
            y, kv_cache = layer.decode_step(X[:, t : t + 1], kv_cache, memory_kv)
            np.testing.assert_allclose(y[:, 0], whole[:, t], rtol=1e-10, err_msg=norm)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, PreNormEncoderLayer, PreNormDecoderLayer])
def test_a_layer_refuses_a_configuration_with_another_norm(kind):
    own = "pre" if kind.__name__.startswith("PreNorm") else "post"
    kind(config_of(own))
    for norm in {"pre", "post", "n-dan"} - {own}:
        with pytest.raises(
            UserError, match=f"{kind.__name__} computes norm='{own}', and the configuration has norm='{norm}'"
        ):
            kind(config_of(norm))
    with pytest.raises(UserError, match="'post' is not a sequence for a residual connection"):
        SequenceDecoderLayer(tiny_config())


@pytest.mark.parametrize("sequence", ["n-", "n-d", "n-aa", "n-dad", "da-", "a-n", "nd-a", "n-xa", "-"])
def test_a_configuration_refuses_invalid_sequences(sequence):
    with pytest.raises(
        UserError, match="is not a sequence for a residual connection: write n or nothing, a dash"
    ):
        TransformerConfig(norm=sequence)


def test_a_sequence_without_a_norm_at_its_end_needs_a_final_norm():
    with pytest.raises(UserError, match="norm='n-da' leaves the top of each stack unnormalized"):
        TransformerConfig(norm="n-da")
    TransformerConfig(norm="n-dan")
