"""Details that a gradient check at one place does not cover: kinks, empty batches, and tied arrays."""

import numpy as np
import pytest
from tiny import tiny_config, tiny_model

from npformer import functional as F
from npformer import gradcheck
from npformer.models.bert import MaskedLanguageModel
from npformer.models.gpt import CausalLanguageModel
from npformer.models.transformer import Decoder, Encoder, EncoderDecoder


def test_a_batch_of_padding_only_has_loss_0_and_no_gradient():
    loss, cache = F.cross_entropy(np.ones((2, 3, 5)), np.zeros((2, 3), int), pad_id=0, smoothing=0.1)
    assert loss == 0
    assert not F.cross_entropy_backward(1.0, cache).any()


def test_the_distance_of_two_equal_points_has_no_gradient():
    """At this kink any gradient of length up to 1 would be valid, but NaN would not."""
    q = np.array([[0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    loss, cache = F.l2_distance(np.zeros((2, 4)), q)
    dlogits = F.l2_distance_backward(1.0, cache)
    assert loss == pytest.approx(0.25)
    assert dlogits[0].any()
    assert not dlogits[1].any()


@pytest.mark.parametrize("tied", ["none", "output", "all"])
def test_the_tied_tables(tied):
    """Tied tables are one Parameter, so their gradients are summed in one array."""
    model = tiny_model(tied=tied, target_vocab=11)
    source, target = model.source.tokens.weight, model.target.tokens.weight
    assert (source is target) == (tied == "all")
    assert (model.output.weight is target) == (tied != "none")
    assert (model.output.weight is source) == (tied == "all")


@pytest.mark.parametrize("kind", [MaskedLanguageModel, CausalLanguageModel])
@pytest.mark.parametrize("tied", ["none", "output", "all"])
def test_the_tied_tables_of_a_model_with_one_vocabulary(tied, kind):
    model = tiny_model(kind=kind, tied=tied, target_vocab=11)
    assert (model.output.weight is model.embedding.tokens.weight) == (tied != "none")


def test_an_encoder_and_a_decoder_without_embeddings():
    config, rng = tiny_config(), np.random.default_rng(0)
    model = EncoderDecoder(Encoder(config, dtype=np.float64), Decoder(config, dtype=np.float64))
    source, target = rng.standard_normal((2, 4, config.d_model)), rng.standard_normal((2, 3, config.d_model))
    assert gradcheck(model, source, target, target_mask=np.tril(np.ones((3, 3), bool))).ok
