"""GPT: its configuration, causality, decoding with a KV cache, and training."""

import numpy as np
import pytest
from helpers.lens_models import MODELS

from npformer import UserError
from npformer.models.deepseek import DeepSeekConfig
from npformer.models.gemma2 import Gemma2Config
from npformer.models.gpt import GPT, GPT_PRESETS, GPTConfig
from npformer.models.registry import build
from npformer.models.smollm3 import SmolLM3Config
from npformer.nn import MultiHeadAttention

SIZES = {"vocab_size": 9, "d_model": 8, "n_layers": 2, "n_heads": 4, "context": 8}
LLAMA = {"norm": "rms", "positions": "rotary", "n_kv_heads": 2, "activation": "swiglu", "bias": False}
OPTIONS = {
    "GPT-2": {},
    "Llama": {**LLAMA, "tied": False},
    "window": {**LLAMA, "window": 3, "rotary_layout": "interleaved"},
    "learned positions, window": {"window": 2, "bias": False, "activation": "geglu"},
    "Qwen2": {**LLAMA, "qkv_bias": True},
    "no biases of queries, keys and values": {"qkv_bias": False},
    "no biases": {"bias": False},
    "Llama 3.1, wide heads": {
        **LLAMA,
        "head_dim": 6,
        "rotary_scaling": "llama3",
        "rotary_original_context": 5,
    },
    "head_dim, biases": {"head_dim": 3},
    "DeepSeek": {"d_latent": 3, "d_rotary": 2},
    "DeepSeek, latent queries, biases": {"d_latent": 6, "d_rotary": 4, "d_query_latent": 5, "bias": True},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
IDS = np.array([[2, 5, 6, 7, 5, 1, 0], [4, 8, 3, 0, 0, 2, 8]])


def tiny(dtype=np.float64, **changes):
    """Return a small model whose weights are larger than the initial ones, so that differences show."""
    kind = DeepSeekConfig if "d_latent" in changes else GPTConfig
    model = build(kind(**(SIZES | changes)), rng=np.random.default_rng(0), dtype=dtype)
    model.values += 0.3 * np.random.default_rng(1).standard_normal(model.values.shape).astype(dtype)
    return model


# The configuration


@every_option
def test_the_number_of_parameters_is_known_without_building(options):
    model = tiny(**options)
    assert model.config.count_parameters() == model.count_parameters()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gpt2", 124_439_808),  # Hugging Face's gpt2
        ("gpt2-medium", 354_823_168),
        ("nanogpt-shakespeare", 10_646_784 + 256 * 384),  # nanoGPT prints 10.65 M, without the positions
        ("small", 795_904 + 64 * 128),  # nanoGPT prints 0.80 M
        ("llama-style", 9_492_096),
    ],
)
def test_presets(name, count):
    assert GPTConfig.preset(name).count_parameters() == count
    assert name in GPT_PRESETS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_heads": 3}, "d_model 8 is not divisible by n_heads 3: change one of them"),
        ({"n_kv_heads": 3}, "n_heads 4 is not divisible by n_kv_heads 3: change one of them"),
        ({"n_heads": 8, "positions": "rotary"}, "a head is 1 wide: change d_model or n_heads"),
        ({"norm": "batch"}, "norm is 'batch': choose one of layer, rms"),
        ({"positions": "relative"}, "positions is 'relative': choose one of learned, rotary"),
        ({"activation": "swigl"}, "activation is 'swigl': choose one of none, relu, "),
        ({"qkv_bias": 1}, "qkv_bias is 1: it must be True, False or None"),
        ({"tied": 1}, "tied is 1: it must be True or False"),
        ({"dropout": 1.0}, "dropout is 1.0: it must be at least 0 and below 1"),
        ({"rotary_base": 0}, "rotary_base is 0: it must be a number above 0"),
        ({"pad_id": -1}, "pad_id is -1: it must be a whole number, 0 or more"),
        ({"heads": 2}, "a GPTConfig has no setting 'heads'"),
        ({"rotary_scaling": "yarn"}, "rotary_scaling is 'yarn': choose one of none, llama3"),
        ({"rotary_factor": 0.0}, "rotary_factor is 0.0: it must be a number above 0"),
        ({"rotary_low_factor": 4.0}, "rotary_low_factor is 4.0: it must be below rotary_high_factor, 4.0"),
    ],
)
def test_impossible_settings(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        GPTConfig().replace(**(SIZES | changes))


def test_the_hidden_width_has_as_many_weights_with_a_gate():
    assert (GPTConfig().hidden_width, GPTConfig(activation="swiglu").hidden_width) == (3072, 2048)
    assert GPTConfig(d_ff=7).hidden_width == 7


def test_the_initial_weights_are_those_of_gpt2():
    """The standard deviation is 0.02, and smaller by sqrt(2 n_layers) in the last maps of the sublayers."""
    config = GPTConfig.preset("small", vocab_size=500)
    model = GPT(config, rng=np.random.default_rng(0))
    for name, parameter in model.named_parameters():
        if parameter.value.ndim > 1:
            last = name.endswith(("attention.output.weight", "outer.weight"))
            assert parameter.value.std() == pytest.approx(0.02 / (8**0.5 if last else 1), rel=0.05), name
        else:
            assert set(parameter.value) == {1.0 if name.endswith("gain") else 0.0}
    untied = GPT(config.replace(tied=False), rng=np.random.default_rng(0))
    assert untied.output.weight.value.std() == pytest.approx(0.02, rel=0.05)


ROTARY = {"positions": "rotary"}
LATENT = {"d_latent": 3, "d_rotary": 4}


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({}, {"n_heads": 2}),
        ({}, {"n_kv_heads": 2}),
        ({}, {"d_ff": 20}),
        ({}, {"norm": "rms"}),
        ({}, {"norm_eps": 0.1}),
        ({}, ROTARY),
        (ROTARY, {"rotary_base": 10.0}),
        (ROTARY, {"rotary_layout": "interleaved"}),
        (LATENT, {"rotary_base": 10.0}),
        (LATENT, {"rotary_layout": "interleaved"}),
        ({}, {"activation": "relu"}),
        ({}, {"activation": "swiglu"}),
        ({}, {"window": 2}),
        ({}, {"tied": False}),
    ],
    ids=lambda settings: " ".join(settings) or "default",
)
def test_every_setting_has_an_effect(settings, changes):
    """The setting changes the logits of a model with the same seed."""
    wide = {"d_model": 16}  # a head has two pairs of numbers, so that the base of their rotation counts
    one, other = (tiny(**(wide | both)).forward(IDS)[0] for both in (settings, settings | changes))
    assert np.abs(one - other).max() > 1e-3


def test_the_query_heads_share_the_key_heads():
    _, cache = tiny(**LLAMA).forward(IDS)
    attended = cache.layers[1].self_attention.attention
    assert attended.weights.shape == (2, 4, 7, 7)
    np.testing.assert_array_equal(attended.k[:, 0], attended.k[:, 1])
    assert (attended.k[:, 1] != attended.k[:, 2]).any()


# Dependence of outputs on inputs


def test_rotary_positions_depend_on_distances_only():
    """Two layers with a window of 2 reach 3 tokens, and tokens before them shift their positions."""
    model = tiny(**LLAMA, window=2)
    alone, later = (model.forward(ids)[0][0] for ids in ([[5, 6, 7]], [[1, 2, 3, 5, 6, 7]]))
    np.testing.assert_allclose(later[-1], alone[-1], rtol=1e-11)
    assert np.abs(later[-2] - alone[-2]).max() > 1e-3  # this one reaches a token before them
    other, _ = model.forward([[6, 5, 7]])
    assert np.abs(other[0, -1] - alone[-1]).max() > 1e-3


# Decoding


@every_option
@pytest.mark.parametrize("steps", [(1,) * 7, (4, 1, 1, 1), (3, 2, 2)])
def test_decoding_equals_the_forward_pass(options, steps):
    model = tiny(**options)
    whole, _ = model.forward(IDS)
    done, kv_cache = 0, None
    for n in steps:
        logits, kv_cache = model.decode_step(IDS[:, done : done + n], done, kv_cache)
        done += n
        np.testing.assert_allclose(logits, whole[:, done - 1], rtol=1e-10, atol=1e-12)
    kept = [layer.k[0, :, 0].size + layer.v[0, :, 0].size for layer in kv_cache]
    assert kept == [model.config.cached_numbers] * 2


@pytest.mark.parametrize("name", ["qwen3", "olmo2", "gpt_neox", "gemma2"])
def test_models_with_other_layers_decode_as_their_forward_pass(name):
    model = MODELS[name]()
    whole, _ = model.forward(IDS)
    kv_cache = None
    for t in range(7):
        logits, kv_cache = model.decode_step(IDS[:, t : t + 1], t, kv_cache)
        np.testing.assert_allclose(logits, whole[:, t], rtol=1e-4, atol=1e-5)


def test_prompts_of_different_lengths_are_read_together():
    model, lengths = tiny(), np.array([3, 6])
    logits, kv_cache = model.decode_step(IDS[:, :6], 0, None, lengths=lengths)
    later, _ = model.decode_step(np.array([5, 1]), lengths, kv_cache)
    for row, n in enumerate(lengths):
        ids = [*IDS[row, :n], [5, 1][row]]
        expected = model.forward(np.array([ids]))[0][0, -2:]
        np.testing.assert_allclose([logits[row], later[row]], expected, rtol=1e-10, atol=1e-12)


def test_a_step_must_follow_the_positions_of_the_kv_cache():
    """The cache is extended in place, so a step cannot be repeated with the cache of before."""
    model = tiny()
    _, kv_cache = model.decode_step(IDS[:, :3], 0, None)
    model.decode_step(IDS[:, 3], 3, kv_cache)
    np.testing.assert_array_equal(model.decode_step([1, 2], 0, None)[0], model([[1], [2]])[:, 0])
    for position in (3, np.array([4, 3])):
        with pytest.raises(UserError, match="and the KV cache holds 4 tokens: make them equal"):
            model.decode_step(IDS[:, 3], position, kv_cache)
    with pytest.raises(UserError, match="this model has no head, which computes the logits"):
        tiny(head=False).decode_step(IDS[:, :3], 0, None)


@pytest.mark.parametrize("options", [{}, LLAMA])
def test_more_tokens_than_the_context_are_refused(options):
    model = tiny(**options)
    _, kv_cache = model.decode_step(np.zeros((1, 8), int), 0, None)
    for call in (
        lambda: model.forward(np.zeros((1, 9), int)),
        lambda: model.decode_step(np.zeros(1, int), 8, kv_cache),
    ):
        with pytest.raises(UserError, match=r"^ids is 9 tokens long and the model's limit is 8"):
            call()


# Training


@pytest.mark.parametrize(("layer", "sees_order"), [(0, False), (1, True)])
def test_a_token_sees_no_order_of_earlier_ones_in_a_layer_without_positions(layer, sees_order):
    model = build(
        SmolLM3Config(**{**SIZES, "n_layers": 1}, unrotated=(layer,)),
        rng=np.random.default_rng(0),
        dtype=np.float64,
    )
    a, b = model(np.array([[1, 2, 3], [2, 1, 3]]))[:, -1]
    assert (np.abs(a - b).max() > 1e-6) == sees_order


@pytest.mark.parametrize(("layer", "turns"), [(0, True), (1, False)])
def test_the_rotations_of_a_local_layer_have_their_own_base(layer, turns):
    sizes = {**SIZES, "n_layers": 1, "n_heads": 2}
    configs = [Gemma2Config(**sizes, local=(layer,), local_base=base) for base in (1e4, 10.0)]
    a, b = (build(config, dtype=np.float64)(np.array([[1, 2, 3]]))[0, -1] for config in configs)
    assert (np.abs(a - b).max() > 1e-9) == turns


@pytest.mark.parametrize(("layer", "sees_it"), [(0, False), (1, True)])
def test_a_token_sees_nothing_before_the_window_of_a_local_layer(layer, sees_it):
    config = Gemma2Config(**{**SIZES, "n_layers": 1}, local=(layer,), local_window=2)
    model = build(config, rng=np.random.default_rng(0), dtype=np.float64)
    a, b = model(np.array([[1, 2, 3], [4, 2, 3]]))[:, -1]
    assert (np.abs(a - b).max() > 1e-6) == sees_it


@pytest.mark.parametrize("config", [GPTConfig, Gemma2Config])
def test_dropout_acts_on_attention_weights(config):
    model = build(config(**SIZES, dropout=0.5))
    _, cache = model.forward(IDS, train=True, rng=np.random.default_rng(0))
    assert all(layer.self_attention.attention.dropout_mask is not None for layer in cache.layers)


def test_the_scores_of_a_gemma_2_are_scaled_by_a_width_of_the_configuration():
    model = build(Gemma2Config(**SIZES, scale_width=9))
    scales = {part.scale for part in model.modules() if isinstance(part, MultiHeadAttention)}
    assert [*scales] == [pytest.approx(1 / 3)]


def test_a_gemma_has_qk_norm_or_a_cap():
    with pytest.raises(UserError, match="qk_norm and score_cap are both given"):
        Gemma2Config(**SIZES, qk_norm=True, score_cap=5.0)
