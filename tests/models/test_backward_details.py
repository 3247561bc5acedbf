"""Details that a gradient check of one layer does not cover: tied tables, and stacks without embeddings."""

import numpy as np
from tiny import tiny_config

from npformer import gradcheck
from npformer.models.transformer import Decoder, Encoder, EncoderDecoder


def test_an_encoder_and_a_decoder_without_embeddings():
    config, rng = tiny_config(), np.random.default_rng(0)
    model = EncoderDecoder(Encoder(config, dtype=np.float64), Decoder(config, dtype=np.float64))
    source, target = rng.standard_normal((2, 4, config.d_model)), rng.standard_normal((2, 3, config.d_model))
    assert gradcheck(model, source, target, target_mask=np.tril(np.ones((3, 3), bool))).ok
