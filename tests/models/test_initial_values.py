"""The initial values of all models: each random matrix comes from the generator, in the requested dtype."""

import numpy as np
import pytest
from tiny import SIZES, tiny_config

from npformer.models.bert import MaskedLanguageModel
from npformer.models.gpt import CausalLanguageModel
from npformer.models.if_then import BagOfWords, RecipeReader
from npformer.models.place_reader import Reader
from npformer.models.recurrent.config import ARCHITECTURES as RECURRENT
from npformer.models.recurrent.config import RecurrentConfig
from npformer.models.recurrent.decoder import RecurrentDecoder
from npformer.models.recurrent.encoder import RecurrentEncoder
from npformer.models.registry import architecture, build
from npformer.models.transformer import Transformer
from npformer.models.transformer.layers import DecoderLayer, EncoderLayer
from npformer.models.transformer.stacks import Decoder, Encoder
from npformer.models.universal import UniversalConfig
from npformer.nn import Bidirectional, FeedForward, Recurrent
from npformer.nn.attention import MultiHeadAttention


def of_config(config):
    return lambda rng: build(config, rng=rng, dtype=np.float64)


def of_kind(kind, **changes):
    return lambda rng: kind(tiny_config(**changes), rng=rng, dtype=np.float64)


RECURRENT_SIZES = {"source_vocab": 11, "target_vocab": 9, "d_model": 6, "d_hidden": 4}
MODELS = {
    "Transformer": of_kind(Transformer, positions="learned"),
    "Transformer, fused projections": of_kind(Transformer, fused_projections=True),
    "Transformer, relative positions": of_kind(Transformer, positions="relative"),
    "CausalLanguageModel": of_kind(CausalLanguageModel, source_vocab=9),
    "MaskedLanguageModel": of_kind(MaskedLanguageModel, source_vocab=9),
    "UniversalTransformer": of_config(UniversalConfig(**SIZES)),
    "RecipeReader": lambda rng: RecipeReader(
        9, 3, 4, d_model=6, d_hidden=4, max_length=7, rng=rng, dtype=np.float64
    ),
    "BagOfWords": lambda rng: BagOfWords(9, 3, 4, d_model=6, max_length=7, rng=rng, dtype=np.float64),
    "Reader": lambda rng: Reader("hard", rng=rng, dtype=np.float64),
} | {name: of_config(architecture(name, **RECURRENT_SIZES)) for name in RECURRENT.names()}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_matrix_comes_from_the_generator(make):
    """A layer that does not get the generator takes one with seed 0, and ignores the seed of the model."""
    first, again, other = (dict(make(np.random.default_rng(seed)).named_parameters()) for seed in (1, 1, 2))
    matrices = {name: parameter.value for name, parameter in first.items() if parameter.value.ndim > 1}
    assert matrices
    for name, value in matrices.items():
        np.testing.assert_array_equal(value, again[name].value)
        assert (value != other[name].value).all(), name
        assert value.dtype == np.float64
        assert (value != value.astype(np.float32)).any(), f"{name} was drawn in float32"
    rows = [row.tobytes() for value in matrices.values() for row in value.reshape(-1, value.shape[-1])]
    assert len(set(rows)) == len(rows)


PARTS = {
    "EncoderLayer": lambda rng: EncoderLayer(tiny_config(), rng=rng),
    "DecoderLayer": lambda rng: DecoderLayer(tiny_config(), rng=rng),
    "Encoder": lambda rng: Encoder(tiny_config(), rng=rng),
    "Decoder": lambda rng: Decoder(tiny_config(), rng=rng),
    "RecurrentEncoder": lambda rng: RecurrentEncoder(RecurrentConfig(**RECURRENT_SIZES), rng=rng),
    "RecurrentDecoder": lambda rng: RecurrentDecoder(RecurrentConfig(**RECURRENT_SIZES), rng=rng),
    "MultiHeadAttention": lambda rng: MultiHeadAttention(6, 2, rng=rng),
    "FeedForward": lambda rng: FeedForward(6, 8, rng=rng),
    "Recurrent": lambda rng: Recurrent(6, 4, rng=rng),
    "Bidirectional": lambda rng: Bidirectional(6, 4, rng=rng),
}


@pytest.mark.parametrize("name", [*PARTS, *(name for name in MODELS if name != "Reader")])
def test_without_a_generator_the_seed_is_0(name):
    """All matrices are drawn from one generator with that seed. Reader always needs a generator."""
    make = (MODELS | PARTS)[name]
    default, zero = make(None), make(np.random.default_rng(0))
    for one, other in zip(default.parameters(), zero.parameters(), strict=True):
        np.testing.assert_array_equal(one.value, other.value)
