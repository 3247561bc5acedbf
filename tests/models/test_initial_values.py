"""The initial values of all layers and models come from the given generator, in the requested dtype."""

import importlib
import inspect
import pkgutil
from functools import partial

import numpy as np
import pytest
from tiny import SIZES, tiny_config

import npformer.models
import npformer.nn
from npformer.models.bart import BartConfig, BartInput
from npformer.models.bert import BertConfig
from npformer.models.classifier import ClassifierHead
from npformer.models.deepseek import DeepSeekConfig
from npformer.models.gemma import GemmaConfig
from npformer.models.gemma2 import Gemma2Config
from npformer.models.gpt import GPTConfig
from npformer.models.gpt_neox import GPTNeoXConfig
from npformer.models.if_then import BagOfWords, RecipeReader
from npformer.models.if_then.reader import Answer
from npformer.models.mixture import MixtureConfig
from npformer.models.olmo2 import Olmo2Config
from npformer.models.place_reader import Reader
from npformer.models.qwen3 import Qwen3Config
from npformer.models.recurrent.config import ARCHITECTURES as RECURRENT
from npformer.models.recurrent.config import RecurrentConfig
from npformer.models.recurrent.decoder import RecurrentDecoder
from npformer.models.recurrent.encoder import RecurrentEncoder
from npformer.models.registry import architecture, build
from npformer.models.smollm3 import SmolLM3Config
from npformer.models.t5 import T5Config
from npformer.models.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    SequenceDecoderLayer,
    SequenceEncoderLayer,
    Transformer,
)
from npformer.models.universal import UniversalConfig, UniversalDecoder, UniversalEncoder
from npformer.models.vit import ViTConfig, ViTEmbedding
from npformer.nn import (
    AttentionalState,
    Bidirectional,
    BucketedAttention,
    CappedAttention,
    Embedding,
    FeedForward,
    GatedFeedForward,
    InputEmbedding,
    LatentAttention,
    LearnedPositions,
    Linear,
    LocalPredictive,
    MixtureOfExperts,
    Module,
    MultiHeadAttention,
    MultiHeadLatentAttention,
    Projection,
    QKNormAttention,
    Recurrent,
    RelativeAttention,
    RotaryPositions,
    Similarity,
    SimilarityAttention,
)
from npformer.nn.init import UNDRAWN
from npformer.nn.lora import LoRALinear, LoRAProjection
from npformer.nn.patches import PatchEmbedding


def of_config(config):
    return lambda rng: build(config, rng=rng, dtype=np.float64)


def of_kind(kind, **changes):
    return lambda rng: kind(tiny_config(**changes), rng=rng, dtype=np.float64)


RECURRENT_SIZES = {"source_vocab": 11, "target_vocab": 9, "d_model": 6, "d_hidden": 4}
GPT_SIZES = {"vocab_size": 9, "d_model": 8, "n_layers": 2, "n_heads": 4, "context": 8}
LLAMA = {"norm": "rms", "positions": "rotary", "n_kv_heads": 2, "activation": "swiglu", "tied": False}
MODELS = {
    "Transformer": of_kind(Transformer, positions="learned"),
    "Transformer, fused projections": of_kind(Transformer, fused_projections=True),
    "Transformer, relative positions": of_kind(Transformer, positions="relative"),
    "Bert": of_config(BertConfig(vocab_size=9, d_model=6, n_heads=3, n_layers=2, max_length=8)),
    "Bert, RoBERTa's positions": of_config(
        BertConfig(vocab_size=9, d_model=6, n_heads=3, n_layers=1, max_length=8, first_position=2)
    ),
    "GPT": of_config(GPTConfig(**GPT_SIZES)),
    "GPT, Llama": of_config(GPTConfig(**GPT_SIZES, **LLAMA)),
    "Qwen3": of_config(Qwen3Config(**GPT_SIZES)),
    "Olmo2": of_config(Olmo2Config(**GPT_SIZES)),
    "SmolLM3": of_config(SmolLM3Config(**GPT_SIZES)),
    "GPTNeoX": of_config(GPTNeoXConfig(**GPT_SIZES, rotary_share=1.0)),
    "Gemma": of_config(GemmaConfig(**GPT_SIZES)),
    "Gemma2": of_config(Gemma2Config(**GPT_SIZES, score_cap=2.0, local=(1,), local_window=2)),
    "Gemma 3": of_config(Gemma2Config(**GPT_SIZES, qk_norm=True)),
    "Mixture": of_config(MixtureConfig(**GPT_SIZES, n_experts=3, dense=(1, 2))),
    "Bart": of_config(BartConfig(**SIZES)),
    "BartInput": lambda rng: BartInput(9, BartConfig(**SIZES), rng=rng, dtype=np.float64),
    "DeepSeek": of_config(DeepSeekConfig(**GPT_SIZES, d_latent=5, d_rotary=2, d_query_latent=3)),
    "T5": of_config(T5Config(**SIZES | {"tied": "all", "target_vocab": 11}, own_output=True)),
    "ViT": of_config(
        ViTConfig(image_size=(4, 6), patch_size=(2, 3), d_model=8, n_layers=1, n_heads=2, d_ff=9, n_classes=3)
    ),
    "ViTEmbedding": lambda rng: ViTEmbedding(
        ViTConfig(image_size=(4, 6), patch_size=(2, 3), d_model=8, n_heads=2), rng=rng, dtype=np.float64
    ),
    "UniversalTransformer": of_config(UniversalConfig(**SIZES)),
    "RecipeReader": lambda rng: RecipeReader(
        9, 3, 4, d_model=6, d_hidden=4, max_length=7, rng=rng, dtype=np.float64
    ),
    "BagOfWords": lambda rng: BagOfWords(9, 3, 4, d_model=6, max_length=7, rng=rng, dtype=np.float64),
    "Reader": lambda rng: Reader("hard", rng=rng, dtype=np.float64),
} | {name: of_config(architecture(name, **RECURRENT_SIZES)) for name in RECURRENT.names()}


def of_layer(kind, *arguments, **settings):
    return lambda rng: kind(*arguments, **settings, rng=rng, dtype=np.float64)


def of_adapted(adapted, kind, *arguments):
    return lambda rng: adapted(of_layer(kind, *arguments)(rng), 2, rng=rng)


LAYERS = {
    "Linear": of_layer(Linear, 6, 4),
    "LoRALinear": of_adapted(LoRALinear, Linear, 6, 4),
    "LoRAProjection": of_adapted(LoRAProjection, Projection, 6, [4, 6], [2, 2]),
    "Embedding": of_layer(Embedding, 9, 6),
    "InputEmbedding": of_layer(InputEmbedding, 9, 6, 7, positions="learned"),
    "LearnedPositions": of_layer(LearnedPositions, 7, 6),
    "FeedForward": of_layer(FeedForward, 6, 8),
    "GatedFeedForward": of_layer(GatedFeedForward, 6, 8),
    "MixtureOfExperts": of_layer(MixtureOfExperts, 6, 8, 3),
    "PatchEmbedding": of_layer(PatchEmbedding, 6, 2, (2, 3)),
    "ClassifierHead": of_layer(ClassifierHead, 6, 4, hidden="tanh"),
    "Recurrent": of_layer(Recurrent, 6, 4),
    "Bidirectional": of_layer(Bidirectional, 6, 4),
    "Projection": of_layer(Projection, 6, [4, 6], [2, 2]),
    "MultiHeadAttention": of_layer(MultiHeadAttention, 6, 2),
    "MultiHeadLatentAttention": of_layer(
        MultiHeadLatentAttention, 6, 2, d_latent=5, rotary=RotaryPositions(4, 5, rotated=2)
    ),
    "RelativeAttention": of_layer(RelativeAttention, 6, 2),
    "BucketedAttention": of_layer(BucketedAttention, 6, 2),
    "CappedAttention": of_layer(CappedAttention, 6, 2),
    "QKNormAttention": of_layer(QKNormAttention, 6, 2),
    "Similarity": of_layer(Similarity, "perceptron", 6, 4),
    "SimilarityAttention": of_layer(SimilarityAttention, 6, 2, similarity="general"),
    "LocalPredictive": of_layer(LocalPredictive, Similarity("dot", 6, 6)),
    "AttentionalState": of_layer(AttentionalState, 6, 4),
    "LatentAttention": of_layer(LatentAttention, 6, 7),
    "Answer": of_layer(Answer, 6, 4, 3, 7),
    "EncoderLayer": of_kind(EncoderLayer),
    "DecoderLayer": of_kind(DecoderLayer),
    "PreNormEncoderLayer": of_kind(PreNormEncoderLayer, norm="pre", final_norm=True),
    "PreNormDecoderLayer": of_kind(PreNormDecoderLayer, norm="pre", final_norm=True),
    "SequenceEncoderLayer": of_kind(SequenceEncoderLayer, norm="n-dan"),
    "SequenceDecoderLayer": of_kind(SequenceDecoderLayer, norm="n-dan"),
    "UniversalEncoder": of_kind(partial(UniversalEncoder, halting=True), n_layers=2),
    "UniversalDecoder": of_kind(UniversalDecoder, n_layers=2),
    "Encoder": of_kind(Encoder),
    "Decoder": of_kind(Decoder),
    "RecurrentEncoder": of_layer(RecurrentEncoder, RecurrentConfig(**RECURRENT_SIZES)),
    "RecurrentDecoder": of_layer(RecurrentDecoder, RecurrentConfig(**RECURRENT_SIZES)),
}
ALL = LAYERS | MODELS


def is_random(value):
    """Return True unless the values are the constants of a gain or of a bias."""
    return len(np.unique(value)) > 2


def classes_with_a_generator():
    """Return the layers and models whose constructor has the argument rng."""
    for package in (npformer.nn, npformer.models):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found, waiting = set(), [Module]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if (
            kind.__module__.startswith(("npformer.nn.", "npformer.models."))
            and "rng" in inspect.signature(kind).parameters
        ):
            found.add(kind)
    return found


def test_every_layer_with_a_generator_is_made_here():
    """A base class counts as made if a class that is derived from it is."""
    made = {type(part) for make in ALL.values() for part in make(np.random.default_rng(0)).modules()}
    missing = [kind for kind in classes_with_a_generator() if not any(issubclass(m, kind) for m in made)]
    assert missing == [], "add these to LAYERS or MODELS"


@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_every_matrix_comes_from_the_generator(make):
    """A layer that does not get the generator takes one with seed 0, and ignores the seed of the model."""
    first, again, other = (dict(make(np.random.default_rng(seed)).named_parameters()) for seed in (1, 1, 2))
    matrices = {name: parameter.value for name, parameter in first.items() if is_random(parameter.value)}
    assert matrices
    for name, value in matrices.items():
        np.testing.assert_array_equal(value, again[name].value)
        assert (value != other[name].value).all(), name
        assert value.dtype == np.float64
        assert (value != value.astype(np.float32)).any(), f"{name} was drawn in float32"
    rows = [row.tobytes() for value in matrices.values() for row in value.reshape(-1, value.shape[-1])]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("name", MODELS)
def test_a_configuration_knows_the_number_of_parameters(name):
    model = MODELS[name](np.random.default_rng(0))
    if hasattr(config := getattr(model, "config", None), "count_parameters"):
        assert config.count_parameters() == model.count_parameters()


def test_the_least_number_of_parameters_of_a_vit_counts_the_matrices_of_its_layers():
    model = MODELS["ViT"](np.random.default_rng(0))
    layers = (parameter for _, parameter in model.encoder.layers[0].named_parameters())
    assert model.config.least_parameters == sum(p.value.size for p in layers if p.value.ndim > 1)


@pytest.mark.parametrize("kind", [Embedding, LearnedPositions])
def test_the_vectors_of_a_table_have_a_length_of_about_1(kind):
    assert kind(400, 64).weight.value.std() == pytest.approx(1 / 8, rel=0.05)


def test_nothing_is_drawn_for_a_model_whose_values_are_read_from_a_file():
    models = [model for make in MODELS.values() if (model := make(UNDRAWN)).values is not None]
    assert len(models) > 20
    assert not [type(model) for model in models if model.values.any()]


def test_a_t5_has_no_biases_but_those_of_the_distances_and_may_scale_its_output():
    config = T5Config(**SIZES | {"tied": "all", "target_vocab": 11}, n_buckets=64, max_distance=50)
    model = build(config, rng=np.random.default_rng(0), dtype=np.float64)
    assert not [name for name, _ in model.named_parameters() if name.endswith("bias")]
    assert BucketedAttention(6, 2).buckets["both_sides"]
    for stack, both_sides in ((model.encoder, True), (model.decoder, False)):
        attention = stack.layers[0].self_attention
        assert attention.buckets == {"n_buckets": 64, "max_distance": 50, "both_sides": both_sides}
        assert attention.table.value.std() == pytest.approx(config.d_model**-0.5, rel=0.3)
    assert model.output.factor == pytest.approx(config.d_model**-0.5)
    assert build(config.replace(own_output=True, scale_output=False)).output.factor == 1


@pytest.mark.parametrize("name", [name for name in ALL if name != "Reader" and "LoRA" not in name])
def test_without_a_generator_the_seed_is_0(name):
    """One generator draws all matrices. Reader always needs one, and LoRA adapts a layer drawn before."""
    default, zero = ALL[name](None), ALL[name](np.random.default_rng(0))
    for one, other in zip(default.parameters(), zero.parameters(), strict=True):
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize(
    "config",
    [GPTConfig(**GPT_SIZES, **LLAMA), MixtureConfig(**GPT_SIZES, n_experts=3)],
    ids=["GPT", "Mixture"],
)
def test_a_seed_gives_the_same_gpt_in_every_version(config):
    """The parts draw first, in the order of their construction, and then all matrices are drawn anew."""
    model, rng = build(config, rng=np.random.default_rng(5)), np.random.default_rng(5)
    matrices = [parameter.value for parameter in model.parameters() if parameter.value.ndim > 1]
    embedding, *parts = matrices
    rng.standard_normal(embedding.shape)
    for part in parts:
        rng.uniform(size=part.shape)
    np.testing.assert_allclose(embedding, 0.02 * rng.standard_normal(embedding.shape), rtol=1e-6)
