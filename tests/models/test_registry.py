"""Every kind of configuration refuses wrong flags, and settings of a model that a file cannot hold."""

import dataclasses

import numpy as np
import pytest
from family_models import CONFIGS

from npformer import UserError
from npformer.functional.rotary import rotary_table
from npformer.models.gpt import GPTConfig
from npformer.models.registry import (
    KINDS,
    LARGEST_TABLE,
    attention_arrays,
    build,
    config_from_settings,
    model_from_state,
    require_size,
)
from npformer.models.transformer import PreNormEncoderLayer
from npformer.models.vit import ViTConfig
from npformer.nn import (
    CappedAttention,
    Embedding,
    FeedForward,
    GatedFeedForward,
    RotaryPositions,
)
from npformer.nn.patches import PatchEmbedding

STATE = {"weight": np.zeros(10**4)}
SMALL = {"d_model": 4, "n_heads": 1, "n_layers": 1, "d_ff": 4, "d_hidden": 4}
VOCABULARIES = ("source_vocab", "target_vocab", "vocab_size")
every_kind = pytest.mark.parametrize("kind", KINDS)
# BERT has no flags, and its table of positions is a parameter, which the file holds
all_but_bert = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bert"])
without_learned_positions = pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("bert", "bart")])


def settings_of(kind, wanted):
    """Return the names of the settings of a kind that are wanted, in the order of the configuration."""
    return [field.name for field in dataclasses.fields(KINDS[kind]) if wanted(field)]


def small(kind, **changes):
    """Return a configuration with few parameters."""
    sizes = {name: SMALL[name] for name in settings_of(kind, lambda field: field.name in SMALL)}
    vocabularies = dict.fromkeys(settings_of(kind, lambda field: field.name in VOCABULARIES), 9)
    return KINDS[kind]().replace(**(sizes | vocabularies | changes))


@all_but_bert
def test_every_flag_must_be_true_or_false(kind):
    flags = settings_of(kind, lambda field: field.type in (bool, "bool"))
    assert flags
    for name in flags:
        with pytest.raises(UserError, match=f"{name} is 1: it must be True or False"):
            KINDS[kind]().replace(**{name: 1})


@every_kind
@pytest.mark.parametrize("wrong", ["8", float("nan"), -1.5])
def test_every_number_must_be_one_and_at_least_minus_1(kind, wrong):
    for name in settings_of(kind, lambda field: type(field.default) in (int, float)):
        if not (wrong == -1.5 and name in ("mask_fill", "halting_bias", "forget_bias")):
            with pytest.raises(UserError, match=f"^{name} is {wrong!r}[:,] "):
                KINDS[kind]().replace(**{name: wrong})


@every_kind
def test_every_size_is_at_least_1(kind):
    names = {"max_length", "context", "n_kv_heads", "head_dim", "d_value", "d_head", *SMALL, *VOCABULARIES}
    names |= {"window", "local_window", "scale_width", "rotary_original_context", "max_distance"}
    for name in settings_of(kind, lambda field: field.name in names):
        with pytest.raises(UserError, match=f"^{name} is 0[:,] "):
            KINDS[kind]().replace(**{name: 0})


@all_but_bert
def test_every_flag_changes_the_parameters_or_the_output_or_is_refused(kind):
    def outcome(config):
        model = build(config, rng=np.random.default_rng(0), dtype=np.float64)
        ids = [np.array([[1, 2, 3, 0]])] * (2 if hasattr(config, "source_vocab") else 1)
        return [(name, part.shape) for name, part in model.named_parameters()], model.forward(*ids)[0]

    config = small(kind)
    shapes, logits = outcome(config)
    for name in settings_of(kind, lambda field: field.type in (bool, "bool")):
        change = {name: not getattr(config, name)}
        if name in getattr(config, "fixed", ()):
            with pytest.raises(UserError, match=f"{name} is .*: leave it out"):
                config.replace(**change)
        else:
            others, y = outcome(config.replace(**change))
            assert shapes != others or not np.array_equal(y, logits), name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if hasattr(KINDS[kind], "norm_eps")])
def test_every_norm_has_the_eps_of_the_configuration(kind):
    qk_norm = {"qk_norm": True} if hasattr(KINDS[kind], "qk_norm") else {}
    places = [{"norm": each, "final_norm": True} for each in ("pre", "n-da")] if kind == "transformer" else []
    for settings in ({}, *places):
        model = build(small(kind, norm_eps=0.25, **qk_norm, **settings))
        assert {part.eps for part in model.modules() if hasattr(part, "eps")} == {0.25}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if hasattr(KINDS[kind], "scale_embedding")])
def test_token_vectors_are_multiplied_by_the_root_of_their_width_if_the_configuration_says_so(kind):
    is_fixed = "scale_embedding" in getattr(KINDS[kind], "fixed", ())
    for flag in (small(kind).scale_embedding,) if is_fixed else (True, False):
        model = build(small(kind, scale_embedding=flag))
        assert {m.scale for m in model.modules() if type(m) is Embedding} == {2.0 if flag else 1.0}


@every_kind
def test_numbers_of_numpy_become_numbers_of_python(kind):
    """So that a configuration can be written as JSON."""
    config = small(kind)
    numbers = {name: value for name, value in config.to_dict().items() if type(value) in (int, float)}
    changed = config.replace(**{name: np.asarray(value)[()] for name, value in numbers.items()})
    assert all(type(getattr(changed, name)) is type(value) for name, value in numbers.items())


@pytest.mark.parametrize("config", [*map(small, KINDS), *CONFIGS.values()], ids=[*KINDS, *CONFIGS])
def test_every_parameter_has_the_dtype_that_is_asked_for(config):
    """A wider part would make all of them wider, since they lie in one array."""
    model = build(config, dtype=np.float16)
    assert {part.value.dtype for part in model.parameters()} == {np.dtype(np.float16)}


@pytest.mark.parametrize("kind", ["gpt", "olmo2", "gemma2", "mixture"])
def test_rotary_positions_have_the_settings_of_the_configuration(kind):
    config = small(kind, positions="rotary", rotary_scaling="llama3", rotary_base=1e9, context=9000)
    [rotary] = {id(m): m for m in build(config).modules() if type(m) is RotaryPositions}.values()
    cos, sin = rotary_table(np.arange(9000), config.d_head, 1e9, config.scaling)
    np.testing.assert_allclose(rotary.cos, cos, atol=1e-6)
    np.testing.assert_allclose(rotary.sin, sin, atol=1e-6)


@pytest.mark.parametrize("kind", [k for k in KINDS if "positions" in settings_of(k, lambda _: True)])
def test_rotary_positions_have_the_dtype_of_the_model(kind):
    try:
        model = build(small(kind, positions="rotary"), dtype=np.float16)
    except UserError:
        return  # this kind has no rotary positions
    tables = {m.cos.dtype for m in model.modules() if type(m) is RotaryPositions}
    assert tables == {np.dtype(np.float16)}


def test_the_kind_of_a_checkpoint_is_a_known_one():
    with pytest.raises(UserError, match=r"the kind of the model is 'gtp', .* newer npformer: .* gpt\?"):
        config_from_settings("gtp", {})


@every_kind
def test_every_dropout_has_a_probability_of_the_configuration(kind):
    names = settings_of(kind, lambda field: field.name.endswith("dropout"))
    model = build(small(kind, **dict.fromkeys(names, 0.25)))
    # without a probability of their own, feed-forward networks drop nothing in their middle, as in GPT-2
    without = () if "feed_forward_dropout" in names else (FeedForward, GatedFeedForward)
    parts = [part for part in model.modules() if not isinstance(part, without)]
    found = [getattr(part, name, None) for part in parts for name in ("p", "dropout")]
    assert {p for p in found if isinstance(p, float)} == {0.25}


@every_kind
def test_each_dropout_acts_in_training(kind):
    every_expert = {"n_experts": 2, "top_k": 2} if kind == "mixture" else {}
    model = build(small(kind, dropout=0.25, **every_expert), dtype=np.float64)
    inputs = [np.array([[1, 2, 3]])] * (2 if hasattr(model.config, "source_vocab") else 1)
    named = [(part, name) for part in model.modules() for name in ("p", "dropout") if hasattr(part, name)]
    parts = [(part, name) for part, name in named if isinstance(getattr(part, name), float)]
    for acting in parts:
        for part, name in parts:
            setattr(part, name, 0.9 if (part, name) == acting else 0.0)
        y, _ = model.forward(*inputs, train=True, rng=np.random.default_rng(0))
        assert not np.array_equal(y, model.forward(*inputs)[0]), acting


@every_kind
def test_the_longest_text_is_read_and_a_longer_one_is_refused(kind):
    limit = "max_length" if settings_of(kind, lambda field: field.name == "max_length") else "context"
    model = build(small(kind, **{limit: 4}))
    for place in range(2 if hasattr(model.config, "source_vocab") else 1):
        inputs = [[[1] * 4]] * (2 if hasattr(model.config, "source_vocab") else 1)
        model.forward(*inputs)
        inputs[place] = [[1] * 5]
        with pytest.raises(UserError, match=r"5 .*4"):
            model.forward(*inputs)
    if hasattr(model.config, "source_vocab"):
        memory, state = model.encode(np.array([[1, 1]])), None
        for position in range(4):
            _, state = model.decode_step(np.array([1]), position, state, *memory)
        with pytest.raises(UserError, match=r"^target is 5 tokens long and the model's limit is 4"):
            model.decode_step(np.array([1]), 4, state, *memory)


@every_kind
def test_texts_of_one_token_are_read_forward_and_backward(kind):
    model = build(small(kind), dtype=np.float64)
    logits, cache = model.forward(*[[[1]]] * (2 if hasattr(model.config, "source_vocab") else 1))
    if issubclass(KINDS[kind], GPTConfig):  # of one layer
        np.testing.assert_allclose(model.decode_step(np.array([1]), 0, None)[0], logits[:, 0])
    model.backward(np.ones_like(logits), cache)
    assert np.isfinite(model.grads).all()
    for weights in attention_arrays(cache).values():
        np.testing.assert_allclose(weights, 1)  # there is one key


def test_the_cap_of_the_scores_is_that_of_the_configuration():
    model = build(small("gemma2", score_cap=3.0))
    assert {part.cap for part in model.modules() if isinstance(part, CappedAttention)} == {3.0}


@pytest.mark.parametrize("attention", ["local-m", "local-p"])
def test_the_window_of_local_attention_is_that_of_the_configuration(attention):
    model = build(small("recurrent", attention=attention, window=3))
    assert model.decoder.attention.reach == 3


@pytest.mark.parametrize(("share", "columns"), [(0.5, 2), (1.0, 4)])
def test_a_gpt_neox_rotates_a_share_of_the_columns(share, columns):
    model = build(small("gpt_neox", rotary_share=share, rotary_base=100.0))
    [rotary] = {id(m): m for m in model.modules() if type(m) is RotaryPositions}.values()
    cos, _ = rotary_table(np.arange(len(rotary.cos)), columns, 100.0)
    np.testing.assert_allclose(rotary.cos, cos, atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if hasattr(KINDS[kind], "source_vocab")])
def test_a_translator_needs_a_target_for_each_source(kind):
    model = build(small(kind))
    with pytest.raises(UserError, match="source holds 2 sentences and target_in 3: give equally many"):
        model.forward(np.ones((2, 3), int), np.ones((3, 3), int))


@every_kind
def test_every_input_has_ids_of_the_vocabulary(kind):
    model, right, wrong = build(small(kind)), [[1, 2]], [[1, 9]]
    names = ["source", "target_in"] if hasattr(model.config, "source_vocab") else ["ids"]
    for place, name in enumerate(names):
        inputs = [right] * len(names)
        model.forward(*inputs)  # a list of lists is read
        inputs[place] = wrong
        with pytest.raises(UserError, match=f"^{name}.* 9"):
            model.forward(*inputs)
    if "source" in names:
        model.encode(right)
        with pytest.raises(UserError, match=r"^source.* 9"):
            model.encode(wrong)


@every_kind
def test_layers_that_are_named_in_a_list_are_stored_in_a_tuple(kind):
    """A checkpoint holds lists, and a configuration is compared with others and hashed."""
    for name in settings_of(kind, lambda field: isinstance(field.default, tuple)):
        assert getattr(small(kind, **{name: [0]}), name) == (0,)


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("gpt_neox", {"rotary_share": 0.2}, "rotary_share is 0.2: it rotates 0 of 4 columns"),
        ("gpt_neox", {"rotary_share": 0.75}, "rotary_share is 0.75: it rotates 3 of 4 columns"),
        ("gpt_neox", {"rotary_share": 1.25}, "rotary_share is 1.25: "),
        ("deepseek", {"d_rotary": 3}, "d_rotary is 3, and pairs of numbers are rotated: make it even"),
        ("deepseek", {"positions": "learned"}, "positions is 'learned': choose one of rotary"),
        ("deepseek", {"n_kv_heads": 1}, "n_kv_heads is 1: latent attention has none, leave it out"),
        ("deepseek", {"qkv_bias": True}, "qkv_bias is True: latent attention has none, leave it out"),
        ("universal", {"n_layers": 1001}, "n_layers is 1,001 steps: give at most 1,000"),
        ("universal", {"decoder_layers": 1}, "repeats one layer in each stack: leave out decoder_layers"),
        ("t5", {"positions": "learned"}, "positions is 'learned', and every T5 has 'none': leave it out"),
    ],
)
def test_impossible_settings(kind, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        small(kind, **settings)


def test_the_largest_number_of_steps_of_a_universal_transformer():
    assert small("universal", n_layers=1000).n_layers == 1000


def test_a_vit_checks_the_settings_that_it_shares_with_a_bert_and_its_images():
    config = ViTConfig(image_size=(4, 6), patch_size=(2, 3), d_model=8, n_layers=1, n_heads=2, d_ff=9)
    assert config.replace(patch_size=[2, 2]) == config.replace(patch_size=(2, 2))
    assert config.replace(patch_size=(2, 2)).grid == (2, 3)
    assert config.replace(patch_size=(2, 2)).max_length == 1 + 2 * 3
    with pytest.raises(UserError, match="d_model 8 is not divisible by n_heads 3"):
        config.replace(n_heads=3)
    with pytest.raises(UserError, match="a size of images and patches is 0: "):
        config.replace(patch_size=(0, 3))
    for name, wrong in (("n_classes", -1), ("n_colours", 0)):
        with pytest.raises(UserError, match=f"{name} is {wrong}: "):
            config.replace(**{name: wrong})
    with pytest.raises(
        UserError, match=r"images of \(4, 6\) pixels cannot be cut into patches of \(3, 3\): "
    ):
        config.replace(patch_size=(3, 3))
    model = build(config.replace(n_classes=3, dropout=0.5))
    assert {type(layer) for layer in model.encoder.layers} == {PreNormEncoderLayer}
    for patches in (model.embedding.patches, PatchEmbedding(400, 3, (2, 3))):
        assert 0.015 < patches.weight.value.std() < 0.025
    assert model.forward(np.zeros((2, 3, 4, 6), np.float32))[0].shape == (2, 3)  # a class for each image
    with pytest.raises(
        UserError, match=r"images have the shape \(1, 3, 6, 4\), and the model reads \(B, 3, 4"
    ):
        model.forward(np.zeros((1, 3, 6, 4), np.float32))


@every_kind
def test_sizes_that_the_file_cannot_hold(kind):
    """One size is huge and the others are small, so that the bound must count each of them."""
    require_size(small(kind), STATE)
    vocabularies = settings_of(kind, lambda field: field.name in VOCABULARIES)
    sizes = settings_of(kind, lambda field: field.name in SMALL and field.name != "n_heads")
    for names in (vocabularies, *([size] for size in sizes)):
        if names == ["n_layers"] and kind == "universal":
            continue  # its layers have the same parameters
        with pytest.raises(UserError, match="the settings describe a model of more than"):
            require_size(small(kind, **dict.fromkeys(names, 4000)), STATE)
    with pytest.raises(UserError, match="the settings describe a model of more than"):
        model_from_state(small(kind, d_model=4000), STATE, np.float32)


def test_relative_positions_that_the_file_cannot_hold():
    require_size(small("transformer", positions="relative", max_distance=16), STATE)
    with pytest.raises(UserError, match="the settings describe a model of more than"):
        require_size(small("transformer", positions="relative", max_distance=4000), STATE)


@without_learned_positions
def test_a_table_of_positions_that_is_not_in_the_file_has_a_largest_size(kind):
    is_gpt = issubclass(KINDS[kind], GPTConfig)
    name, fixed = ("context", {"positions": "rotary"}) if is_gpt else ("max_length", {})
    require_size(small(kind, **fixed, **{name: LARGEST_TABLE // 4}), STATE)
    with pytest.raises(UserError, match="max_length is 67,108,865, and the table of positions would have"):
        require_size(small(kind, **fixed, **{name: LARGEST_TABLE // 4 + 1}), STATE)


@every_kind
def test_files_that_lack_settings_which_came_later(kind):
    """They are read with the values that say what their models compute: here, the defaults."""
    config = KINDS[kind]()
    settings = {name: value for name, value in config.to_dict().items() if name not in config.later}
    assert config_from_settings(kind, settings) == config
    with pytest.raises(UserError, match="has no setting 'd_model'"):
        config_from_settings(kind, {name: value for name, value in settings.items() if name != "d_model"})
