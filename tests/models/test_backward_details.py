"""Details that a gradient check of one layer does not cover: tied tables, and stacks without embeddings."""

import numpy as np
import pytest
from tiny import tiny_config, tiny_model

from npformer import gradcheck
from npformer.models.transformer import Decoder, Encoder, EncoderDecoder


@pytest.mark.parametrize("tied", ["none", "output", "all"])
def test_the_tied_tables(tied):
    """Tied tables are one Parameter, so their gradients are summed in one array."""
    model = tiny_model(tied=tied, target_vocab=11)
    source, target = model.source.tokens.weight, model.target.tokens.weight
    assert (source is target) == (tied == "all")
    assert (model.output.weight is target) == (tied != "none")
    assert (model.output.weight is source) == (tied == "all")


def test_an_encoder_and_a_decoder_without_embeddings():
    config, rng = tiny_config(), np.random.default_rng(0)
    model = EncoderDecoder(Encoder(config, dtype=np.float64), Decoder(config, dtype=np.float64))
    source, target = rng.standard_normal((2, 4, config.d_model)), rng.standard_normal((2, 3, config.d_model))
    assert gradcheck(model, source, target, target_mask=np.tril(np.ones((3, 3), bool))).ok
