"""Folders without transformers: names, layouts, dtypes, shards, and the sentence for what does not fit."""

import json
import tracemalloc

import numpy as np
import pytest
from family_models import CONFIGS, random_model
from hugging_face_folders import GPT2, LLAMA, QWEN2, gpt2_tensors, llama_tensors, write_folder
from refused import refused
from safetensors.numpy import load_file, save_file

import npformer
from npformer.interop import export_folder, load_folder
from npformer.interop.families import FAMILIES
from npformer.interop.families.family import Stored
from npformer.interop.settings_file import Settings
from npformer.nn.init import UNDRAWN
from npformer.nn.module import Module

LLAMA_TENSORS = llama_tensors()
IDS = np.array([[1, 2, 3, 8]])


def llama_folder(folder, **changes):
    """Write a folder of a Llama, with changes of its settings. None leaves a setting out."""
    settings = {name: value for name, value in (LLAMA | changes).items() if value is not None}
    return write_folder(folder, settings, LLAMA_TENSORS)


def logits_of(folder, dtype=np.float64):
    return load_folder(folder, dtype).model.forward(IDS)[0]


def test_each_value_is_at_its_place(tmp_path):
    tensors = gpt2_tensors()
    model = load_folder(write_folder(tmp_path, GPT2, tensors)).model
    state = model.state_dict()
    theirs = {"embedding.tokens": "wte", "layers.1.feed_forward.outer": "h.1.mlp.c_proj"}
    for name, their_name in theirs.items():
        np.testing.assert_array_equal(state[f"{name}.weight"], tensors[f"transformer.{their_name}.weight"])
    assert model.values.dtype == np.float32
    assert all(np.shares_memory(p.value, model.values) for p in model.parameters())
    assert not any(p.has_grad for p in model.parameters())


def test_matrices_are_transposed_and_joined(tmp_path):
    tensors = llama_tensors(qkv_bias=True)
    state = load_folder(write_folder(tmp_path, QWEN2, tensors)).model.state_dict()
    parts = [tensors[f"model.layers.1.self_attn.{part}_proj.weight"] for part in "qkv"]
    np.testing.assert_array_equal(
        state["layers.1.self_attention.query_key_value.weight"], np.concatenate(parts).T
    )
    biases = [tensors[f"model.layers.0.self_attn.{part}_proj.bias"] for part in "qkv"]
    np.testing.assert_array_equal(
        state["layers.0.self_attention.query_key_value.bias"], np.concatenate(biases)
    )
    np.testing.assert_array_equal(state["output.weight"], tensors["lm_head.weight"].T)


def test_the_dtype_of_the_model(tmp_path):
    folder = llama_folder(tmp_path)
    in_float64 = logits_of(folder, "float64")
    assert in_float64.dtype == np.float64
    assert logits_of(folder, np.float32).dtype == np.float32
    np.testing.assert_allclose(logits_of(folder, np.float32), in_float64, rtol=1e-4, atol=1e-5)
    for dtype in ("float16", "int32", "bf16"):
        with refused(f"dtype is '{dtype}': choose one of float32, float64"):
            load_folder(folder, dtype)


def test_no_values_are_drawn(tmp_path, monkeypatch):
    def fail(seed=None):
        raise AssertionError("a generator was made")

    monkeypatch.setattr(np.random, "default_rng", fail)
    before = UNDRAWN.bit_generator.state
    load_folder(write_folder(tmp_path, LLAMA, LLAMA_TENSORS))
    assert UNDRAWN.bit_generator.state == before


@pytest.mark.parametrize("dtype", ["float32", "float64"])  # mapped, and read
def test_the_weights_are_in_memory_once(tmp_path, dtype):
    n_positions = 4_000_000  # 96 MB: more than the 64 MB that reading config.json reserves before
    tensors = gpt2_tensors() | {"transformer.wpe.weight": np.ones((n_positions, 6), np.float32)}
    write_folder(tmp_path, GPT2 | {"n_positions": n_positions}, tensors)
    tracemalloc.start()
    loaded = npformer.load(tmp_path, dtype=dtype)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.1 * loaded.model.values.nbytes


# --- shards, and files of older versions ---


def test_folders_with_the_same_model(tmp_path):
    """Shards; names without their prefix, and masks beside the parameters; a table of angles."""
    gpt2, llama = gpt2_tensors(), llama_tensors()
    short = {name.removeprefix("transformer."): tensor for name, tensor in gpt2.items()}
    short |= {"h.0.attn.bias": np.tri(8, dtype=bool), "h.1.attn.masked_bias": np.array(-1e4, np.float32)}
    short |= {"lm_head.weight": gpt2["transformer.wte.weight"]}
    angles = llama | {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(2, np.float32)}
    folders = {"shards": (LLAMA, llama, 3), "short names": (GPT2, short, 1), "angles": (LLAMA, angles, 1)}
    for name, (settings, tensors, n_shards) in folders.items():
        other = write_folder(tmp_path / name, settings, tensors, n_shards=n_shards)
        plain = write_folder(tmp_path / "plain", settings, gpt2 if settings is GPT2 else llama)
        np.testing.assert_array_equal(logits_of(other), logits_of(plain), err_msg=name)


def test_rotary_settings_of_older_files(tmp_path):
    llama3 = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0}
    llama3 |= {"original_max_position_embeddings": 8}
    rope = {"rope_type": "llama3", "rope_theta": 500.0, **llama3}
    new = llama_folder(tmp_path / "new", rope_parameters=rope)
    for name in ("type", "rope_type"):
        old = {"rope_parameters": None, "rope_theta": 500.0, "rope_scaling": {name: "llama3", **llama3}}
        np.testing.assert_array_equal(logits_of(new), logits_of(llama_folder(tmp_path / name, **old)))
    plain = llama_folder(tmp_path / "plain", rope_parameters=None, rope_theta=500.0, rope_scaling=None)
    assert np.abs(logits_of(plain) - logits_of(new)).max() > 1e-3
    assert load_folder(plain).model.config.rotary_base == 500


def test_rotary_settings_of_an_old_gpt_neox():
    old = {"rotary_emb_base": 500.0, "rotary_pct": 0.5}
    new = {"rope_parameters": {"rope_theta": 500.0, "partial_rotary_factor": 0.5}}
    configs = [FAMILIES.find("gpt_neox").config_of(Settings(values)) for values in (old, new)]
    assert configs[0] == configs[1]
    assert (configs[0].rotary_base, configs[0].rotary_share) == (500, 0.5)


# --- what does not fit ---

NAME = "transformer.h.1.ln_2.bias"
MISFITS = {
    f"has no tensor {NAME}: download the model again": ({}, {NAME: None}),
    "has the tensor 'score.weight', which no gpt2 with these settings has": ({}, {"score.weight": (2,)}),
    rf"{NAME} in .* has the shape \[7\], and .*config.json .* make it \[6\]": ({}, {NAME: (7,)}),
    r"wpe.weight in .* has the shape \[8, 6\], .* make it \[9, 6\]": ({"n_positions": 9}, {}),
    "has the tensor '.*h.1.*', which no gpt2 with these settings has": ({"n_layer": 1}, {}),
    "both '.*wte.weight' and '.*wte.weight', which are the same tensor": ({}, {"wte.weight": (9, 6)}),
}


@pytest.mark.parametrize(("sentence", "changes"), MISFITS.items())
def test_a_tensor_that_is_missing_unknown_doubled_or_of_another_shape(tmp_path, sentence, changes):
    settings, shapes = changes
    tensors = gpt2_tensors() | {name: shape and np.ones(shape, np.float32) for name, shape in shapes.items()}
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    with refused(sentence):
        load_folder(write_folder(tmp_path, GPT2 | settings, tensors))


def test_a_t5_that_was_saved_without_its_decoder(tmp_path):
    export_folder(random_model(CONFIGS["t5"]), tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({name: t for name, t in load_file(path).items() if not name.startswith("decoder.")}, path)
    with refused("has no tensor decoder.block.0.* without its decoder .*, save the whole model"):
        load_folder(tmp_path)


@pytest.mark.parametrize("changes", [{"num_hidden_layers": 10**12}, {"hidden_size": 10**10, "head_dim": 4}])
def test_nothing_is_allocated_for_a_model_that_the_files_do_not_hold(tmp_path, monkeypatch, changes):
    def build(*arguments, **settings):
        raise AssertionError("a model was built")

    monkeypatch.setattr(Module, "flatten", build)
    with refused(r"has no tensor model.layers.2|make it \["):
        load_folder(llama_folder(tmp_path, **changes))


LLAMAS = {
    r"model_type is 'mamba' in .*config.json.*, and npformer supports gpt2": {"model_type": "mamba"},
    "config.json in .* has no model_type": {"model_type": None},
    "describes quantized weights": {"quantization_config": {"bits": 4}},
    "has no setting 'vocab_size'": {"vocab_size": None},
    "vocab_size is '9' in .*: it must be a whole number": {"vocab_size": "9"},
    "vocab_size is 9.0 in .*: it must be a whole number": {"vocab_size": 9.0},
    "vocab_size is 0 in .*: it must be 1 or more": {"vocab_size": 0},
    "config.json in .*: norm_eps is -1.0: it must be a number above 0": {"rms_norm_eps": -1},
    "rms_norm_eps|number that is too large": {"rms_norm_eps": 10**299 * 10**20},
    "tie_word_embeddings is 1 in .*: it must be true or false": {"tie_word_embeddings": 1},
    "hidden_act is 'relu' in .*, and npformer supports silu, swish, gelu": {"hidden_act": "relu"},
    "attention_bias is true and mlp_bias is false in .*supports only equal": {"attention_bias": True},
    "n_heads 2 is not divisible by n_kv_heads 3": {"num_key_value_heads": 3},
    "a head is 3 wide: change d_model or n_heads": {"head_dim": 3},
    "10000* in .*, and npformer makes a table of at most 8,388,608": {"max_position_embeddings": 10**9},
    "is 'yarn' in rope_parameters of .*supports default": {"rope_parameters": {"rope_type": "yarn"}},
    "is 'linear' in rope_scaling of .*, and npformer supports": {"rope_scaling": {"type": "linear"}},
    "rope_parameters is .1. in .*: it must be an object": {"rope_parameters": [1]},
    "differs from layer to layer": {"rope_parameters": {"full_attention": {"rope_theta": 1.0}}},
    "rope_parameters of .* has no setting 'factor'": {"rope_parameters": {"rope_type": "llama3"}},
    "rotary_base is 0.0: it must be a number above 0": {"rope_parameters": {"rope_theta": 0}},
    "rotary positions of a part of each head": {"rope_parameters": {"partial_rotary_factor": 0.5}},
    "rotary positions of a part": {"partial_rotary_factor": 0.5},
}


@pytest.mark.parametrize(("sentence", "changes"), LLAMAS.items())
def test_settings_of_a_llama_that_are_refused(tmp_path, sentence, changes):
    with refused(sentence):
        load_folder(llama_folder(tmp_path, **changes))


def test_sliding_windows_are_refused_where_they_are_in_use(tmp_path):
    def load(**changes):
        settings = QWEN2 | {"sliding_window": 4} | changes
        return load_folder(write_folder(tmp_path, settings, llama_tensors(qkv_bias=True)))

    load(use_sliding_window=False, max_window_layers=1)
    load(use_sliding_window=True, max_window_layers=2)
    load(layer_types=["full_attention"] * 2)
    for changes in (
        {"use_sliding_window": True, "max_window_layers": 1},
        {"use_sliding_window": True, "max_window_layers": 0},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"layer_types": "sliding"},
        {"layer_types": 2},
    ):
        with refused("attention with a sliding window in some layers"):
            load(**changes)


SMALL = {
    "vocab_size": 9,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
WINDOW = {"use_sliding_window": True, "sliding_window": 4}
SCALED = {"full_attention": {"rope_type": "llama3", "factor": 8.0}}


@pytest.mark.parametrize(
    ("family", "sentence", "changes"),
    [
        ("qwen3_moe", "attention with a sliding window in some layers", WINDOW),
        ("smollm3", "attention with a sliding window in some layers", WINDOW),
        ("gemma3_text", "rope_type is 'llama3' in", {"rope_parameters": SCALED}),
    ],
)
def test_what_the_layers_of_a_family_do_not_have_is_refused(family, sentence, changes):
    read = FAMILIES.find(family).config_of
    read(Settings(SMALL, "config.json"))
    with refused(sentence):
        read(Settings(SMALL | changes, "config.json"))


@pytest.mark.parametrize(
    ("changes", "base"),
    [
        ({}, 1e6),
        ({"rope_scaling": {"rope_type": "default"}}, 1e6),
        ({"rope_scaling": {"rope_type": "default"}, "rope_theta": 500}, 500),
    ],
)
def test_the_layers_of_a_gemma3_that_see_everything_have_a_large_base(changes, base):
    config = FAMILIES.find("gemma3_text").config_of(Settings(SMALL | changes, "config.json"))
    assert (config.rotary_base, config.local_base) == (base, 10000)


def test_the_head_of_an_encoder_is_that_of_its_class():
    """Old classifiers of tokens have a pooler, and the head of a RoBERTa that fills gaps always has gelu."""
    kept = {"classifier.weight", "bert.pooler.dense.weight"}
    for name, head in {
        "TokenClassification": "token classes",
        "SequenceClassification": "text classes",
    }.items():
        settings = Settings(SMALL | {"architectures": [f"BertFor{name}"], "num_labels": 3}, "config.json")
        bert = FAMILIES.find("bert")
        assert bert.fit_head(bert.config_of(settings), Stored(settings, kept)).head == head
    roberta, settings = FAMILIES.find("roberta"), Settings(SMALL | {"hidden_act": "relu"}, "config.json")
    config = roberta.config_of(settings)
    assert roberta.fit_head(config, Stored(settings, {"roberta.embeddings.x"})).head == "none"
    with refused("the head of a RoBERTa always has gelu"):
        roberta.fit_head(config, Stored(settings, {"lm_head.dense.weight"}))


GPT2S = {
    "scale_attn_weights is false in .*, and npformer supports only true": {"scale_attn_weights": False},
    "is true in .*, and npformer supports only false": {"scale_attn_by_inverse_layer_idx": True},
    "add_cross_attention is true in": {"add_cross_attention": True},
    "is 'tanh' in .*, and npformer supports gelu, gelu_new": {"activation_function": "tanh"},
    "d_model 6 is not divisible by n_heads 4": {"n_head": 4},
}


@pytest.mark.parametrize(("sentence", "changes"), GPT2S.items())
def test_settings_of_a_gpt2_that_are_refused(tmp_path, sentence, changes):
    with refused(sentence):
        load_folder(write_folder(tmp_path, GPT2 | changes, gpt2_tensors()))


def test_a_folder_without_config_json(tmp_path):
    with refused(r"config.json cannot be read \(No such file or directory\): use the"):
        load_folder(tmp_path)
    for content, sentence in (("[1]", "is a list and not a JSON object"), ("{", "is not JSON")):
        (tmp_path / "config.json").write_text(content)
        with refused(sentence):
            load_folder(tmp_path)


def test_a_pickle_is_refused(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02.")
    heads = {"GPT2LMHeadModel": ["GPT2LMHeadModel"], "AutoModelForPreTraining": ["no name", []]}
    for name, given in heads.items():  # the class that keeps the head of the model
        for architectures in (given, {}, None) if name.startswith("Auto") else (given,):
            content = GPT2 | {"architectures": architectures}
            (tmp_path / "config.json").write_text(json.dumps(content))
            with refused(rf"pytorch_model.bin, a pickle, .*, {name}\..* and AutoTokenizer\.from_pretrained"):
                load_folder(tmp_path)
