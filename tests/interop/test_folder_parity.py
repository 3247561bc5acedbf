"""Folders that transformers wrote: logits, attention, loss and all gradients agree with transformers.

The configurations, the weights and the batches are random. In float64 the largest difference is 1e-10, from
files of any data type, and in float32 1e-5. In the families with rotary positions and in OPT, the RMS norm,
the tables of the rotary positions and the softmax of the attention that returns its weights are float32 even
in a float64 model: they are replaced by the same formulas in float64. The models as they stand agree to 1e-5.
"""

import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hugging_face_oracles import (
    IGNORED,
    SEEDS,
    expected_of,
    found_of,
    gradients,
    gradients_by_our_names,
    larger,
    save_oracle,
)
from refused import refused
from safetensors.numpy import load_file, save_file

import npformer
from npformer.interop import load_folder
from npformer.models.registry import attention_layers
from npformer.pretrained import TextEncoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from gpt_oracles import FAMILIES as GPTS  # noqa: E402  it imports torch
from gpt_oracles import compute_in_float64, random_oracle  # noqa: E402

pytestmark = pytest.mark.torch

LENGTH = 8
TRANSLATOR = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


# ---------------------------------------------------------------------------------------------------------
# Random models of transformers


def random_bert(name, rng):
    """Return a random small BERT or DistilBERT."""
    n_heads, d_head = int(rng.integers(1, 5)), int(rng.integers(4, 9))
    n_layers, d_ff, vocab_size = (int(rng.integers(low, high)) for low, high in ((1, 4), (5, 30), (10, 20)))
    shared = {
        "vocab_size": vocab_size,
        "max_position_embeddings": int(rng.integers(LENGTH, 20)),
        "pad_token_id": int(rng.integers(5)),
        "attn_implementation": "eager",
    }
    activation = str(rng.choice(["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"]))
    if name == "distilbert":
        settings = {"dim": n_heads * d_head, "n_heads": n_heads, "n_layers": n_layers, "hidden_dim": d_ff}
        config = transformers.DistilBertConfig(activation=activation, **settings, **shared)
        return transformers.DistilBertForMaskedLM(config)
    config = transformers.BertConfig(
        hidden_size=n_heads * d_head,
        num_attention_heads=n_heads,
        num_hidden_layers=n_layers,
        intermediate_size=d_ff,
        hidden_act=activation,
        type_vocab_size=int(rng.integers(1, 4)),
        layer_norm_eps=float(rng.choice([1e-12, 1e-5])),
        **shared,
    )
    return transformers.BertForMaskedLM(config)


def random_marian(rng):
    """Return a random small translator: widths, heads, layers, ties and so on."""
    # the norm of two numbers is 1 and -1, whatever they are, and leaves gradients that are only rounding
    n_heads, d_head = int(rng.integers(1, 5)), 2 * int(rng.integers(2, 5))
    is_shared = bool(rng.integers(2))
    vocab_size, decoder_vocab_size = (int(n) for n in rng.integers(12, 20, 2))
    pad_id, another_id = (int(n) for n in rng.choice(range(1, 12), 2, replace=False))
    encoder_layers, decoder_layers, d_ff = (int(n) for n in rng.integers(1, 4, 3))
    sizes = {"attention_heads": n_heads, "ffn_dim": 8 * d_ff + 1}
    config = transformers.MarianConfig(
        vocab_size=vocab_size,
        decoder_vocab_size=vocab_size if is_shared else decoder_vocab_size,
        d_model=n_heads * d_head,
        **{f"{side}_{name}": size for name, size in sizes.items() for side in ("encoder", "decoder")},
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        max_position_embeddings=int(rng.integers(LENGTH, 30)),
        activation_function=str(rng.choice(["swish", "gelu", "relu", "gelu_new", "silu"])),
        scale_embedding=bool(rng.integers(2)),
        share_encoder_decoder_embeddings=is_shared,
        tie_word_embeddings=is_shared or bool(rng.integers(2)),
        pad_token_id=pad_id,
        eos_token_id=0,
        decoder_start_token_id=int(rng.choice([pad_id, pad_id, another_id])),
        attn_implementation="eager",
    )
    oracle = transformers.MarianMTModel(config)
    # the attribute leaves the embedding of padding out of the gradient of the table; but a decoder starts
    # with the id of padding, so that would not be the gradient
    for module in oracle.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    return oracle


# ---------------------------------------------------------------------------------------------------------
# Random batches: what the oracle reads, what our model reads, and the targets


def padded(ids, config):
    """Put padding at the end of some sentences (3, T), and nowhere else."""
    ids[ids == config.pad_id] = 5 if config.pad_id != 5 else 6
    ids[1, 3:] = ids[2, 6:] = config.pad_id
    return ids


def batch_of_gpt(config, rng):
    ids = rng.integers(0, config.vocab_size, (2, 7))
    targets = np.full_like(ids, IGNORED)
    targets[:, :-1] = ids[:, 1:]
    return {"input_ids": ids}, (ids,), targets


def batch_of_bert(config, rng):
    ids, labels = (padded(rng.integers(config.vocab_size, size=(3, LENGTH)), config) for _ in range(2))
    labels[:, ::2] = config.pad_id  # only hidden tokens have a loss
    segment_ids = rng.integers(max(1, config.n_segments), size=ids.shape)
    theirs = {"input_ids": ids, "attention_mask": ids != config.pad_id}
    theirs |= {"token_type_ids": segment_ids} if config.n_segments else {}
    targets = np.where(labels == config.pad_id, IGNORED, labels)
    return theirs, (ids, segment_ids if config.n_segments else None), targets


def batch_of_marian(config, rng):
    sizes = (config.source_vocab, config.target_vocab)
    source, target = (padded(rng.integers(0, size, (3, LENGTH - 1)), config) for size in sizes)
    target_in = np.concatenate([np.full((3, 1), config.start_id), target[:, :-1]], 1)
    is_token = target_in != config.pad_id
    is_token[:, 0] = True
    theirs = {"input_ids": source, "attention_mask": source != config.pad_id}
    theirs |= {"decoder_input_ids": target_in, "decoder_attention_mask": is_token}
    return theirs, (source, target_in), np.where(target == config.pad_id, IGNORED, target)


class Family(NamedTuple):
    """How a random model and a random batch of a family are made, and the names of its attention weights."""

    oracle: Any
    batch: Any
    maps: dict


SELF = {"self": "attentions"}
FAMILIES = {
    **{name: Family(partial(random_oracle, name), batch_of_gpt, SELF) for name in GPTS},
    **{name: Family(partial(random_bert, name), batch_of_bert, SELF) for name in ("bert", "distilbert")},
    "marian": Family(random_marian, batch_of_marian, TRANSLATOR),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_logits_attention_loss_and_gradients(name, seed, dtype, tmp_path, monkeypatch):
    """In float32, what forward computes is compared."""
    family = FAMILIES[name]
    oracle = family.oracle(np.random.default_rng(seed))
    oracle = save_oracle(oracle, tmp_path, seed=seed, dtype=dtype if dtype == "float32" else None)
    oracle = oracle.to(getattr(torch, dtype))
    if name == "marian":
        oracle.final_logits_bias.requires_grad_()  # a buffer there, and a parameter here

    def both():
        """Return all arrays of our model and of the oracle."""
        loaded = load_folder(tmp_path, dtype)
        assert loaded.model.values.dtype == dtype
        theirs, ours, targets = family.batch(loaded.model.config, np.random.default_rng(seed))
        oracle.zero_grad()
        expected = expected_of(oracle, family.maps, targets, **theirs)
        found = found_of(loaded.model, family.maps, targets, *ours)
        if dtype == "float32":
            return found, expected
        grads, their_grads = gradients(loaded, oracle)
        return found | grads, expected | their_grads

    if dtype == "float64" and name in GPTS and name != "gpt2":
        assert larger(1e-5, *both()) == {}
        assert larger(1e-10, *both()) != {}  # otherwise the comparison below would patch needlessly
        compute_in_float64(monkeypatch, name)
    assert larger(1e-10 if dtype == "float64" else 1e-5, *both()) == {}


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_a_decoder_without_its_head(name, tmp_path, monkeypatch):
    """The files of LlamaModel: what the last norm puts out, attention and gradients."""
    rng = np.random.default_rng(2)
    oracle = random_oracle(name, rng, tie_word_embeddings=False).model
    oracle = save_oracle(oracle, tmp_path, seed=3, dtype="float64")
    compute_in_float64(monkeypatch, name)
    loaded = load_folder(tmp_path, np.float64)
    ids = rng.integers(0, loaded.model.config.vocab_size, (2, 7))
    outputs = oracle(torch.tensor(ids), output_attentions=True)
    ours, cache = loaded.model.forward(ids)
    gradient = rng.standard_normal(ours.shape)
    (outputs.last_hidden_state * torch.tensor(gradient)).sum().backward()
    loaded.model.backward(gradient, cache)
    theirs = {f"model.{parameter}": p.grad.numpy() for parameter, p in oracle.named_parameters()}
    expected = gradients_by_our_names(loaded.family, loaded.model.config, theirs)
    expected |= {"output": outputs.last_hidden_state.detach().numpy()}
    expected |= {"self": torch.stack(outputs.attentions).detach().numpy()}
    found = {parameter: p.grad for parameter, p in loaded.model.named_parameters()} | {"output": ours}
    assert larger(1e-10, found | {"self": np.stack(attention_layers(cache, "self"))}, expected) == {}
    encoder = npformer.load(tmp_path, dtype="float64")
    assert type(encoder) is TextEncoder
    np.testing.assert_array_equal(encoder.hidden_states(ids)[-1], ours)
    with refused("reads from left to right"):
        encoder.embed("The king")


def test_a_translator_without_its_head_is_refused(tmp_path):
    save_oracle(random_marian(np.random.default_rng(0)).model, tmp_path, seed=1)
    with refused("saved without its head .final_logits_bias is missing.*: save it with MarianMTModel"):
        load_folder(tmp_path)


def test_an_old_file_with_gamma_beta_a_pooler_and_copies_of_tied_tensors(tmp_path):
    """BertForPreTraining saves the pooler and the layer of next sentence prediction as well."""
    oracle = transformers.BertForPreTraining(random_bert("bert", np.random.default_rng(0)).config)
    oracle = save_oracle(oracle, tmp_path, seed=1, dtype="float64")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert {"bert.pooler.dense.weight", "cls.seq_relationship.bias"} <= tensors.keys()
    renamed = {}
    for name, array in tensors.items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        renamed[name] = array
    assert sum(name.endswith(".gamma") for name in renamed) == 2 + 2 * oracle.config.num_hidden_layers
    copies = {
        "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].copy(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].copy(),
        "bert.embeddings.position_ids": np.arange(oracle.config.max_position_embeddings)[None],
    }
    save_file(renamed | copies, path)
    model = load_folder(tmp_path, np.float64).model
    theirs, ours, _ = batch_of_bert(model.config, np.random.default_rng(0))
    logits = oracle(**{name: torch.tensor(x) for name, x in theirs.items()}).prediction_logits
    np.testing.assert_allclose(model(*ours), logits.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("family", GPTS)
def test_the_settings_of_our_configuration_are_those_of_the_folder(tmp_path, family):
    random_oracle(family, np.random.default_rng(3)).save_pretrained(tmp_path)
    loaded = load_folder(tmp_path)
    theirs = json.loads((tmp_path / "config.json").read_text())
    ours = loaded.family.settings_of(loaded.model.config)
    dropouts = {name for name in ours if name.endswith(("pdrop", "dropout"))}
    width = theirs.get("n_inner") or 4 * theirs.get("n_embd", 0)
    theirs |= {"n_inner": width, "head_dim": ours.get("head_dim")}  # null in the file
    if family == "phi3":
        assert theirs["rope_parameters"].pop("partial_rotary_factor") == 1
    if family == "smollm3":  # the drawn list may be longer than the model
        theirs["no_rope_layers"] = theirs["no_rope_layers"][: theirs["num_hidden_layers"]]
    if family == "qwen3_moe":  # the name that published files have
        theirs["num_experts"] = theirs.pop("num_local_experts")
        theirs["mlp_only_layers"] = [i for i in theirs["mlp_only_layers"] if i < theirs["num_hidden_layers"]]
    assert {name: theirs[name] for name in ours.keys() - dropouts} == {
        name: ours[name] for name in ours.keys() - dropouts
    }
