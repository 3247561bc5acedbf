"""BERT and DistilBERT of Hugging Face as oracles: folders that they saved, and what their models compute."""

import numpy as np
import pytest
from hugging_face_oracles import SEEDS, expected_of, gradients, larger, save_oracle
from safetensors.numpy import load_file, save_file

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.interop import load_folder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

LENGTH = 8


def random_oracle(name, seed):
    """Return a random small model of Hugging Face."""
    rng = np.random.default_rng(seed)
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


def random_batch(config, seed):
    """Return ids, segment ids and labels (B, T), with padding at the end of some sentences."""
    rng = np.random.default_rng(seed)
    ids, labels = rng.integers(config.vocab_size, size=(2, 3, LENGTH))
    for array in (ids, labels):
        array[array == config.pad_id] = 5
        array[1, 3:] = array[2, 6:] = config.pad_id
    labels[:, ::2] = config.pad_id  # only hidden tokens have a loss
    return ids, rng.integers(max(1, config.n_segments), size=ids.shape), labels


def outputs_of(oracle, config, batch):
    """Return the logits, the attention weights and the loss of the oracle, which gets its gradients."""
    ids, segment_ids, labels = batch
    inputs = {"input_ids": ids, "attention_mask": ids != config.pad_id}
    inputs |= {"token_type_ids": segment_ids} if config.n_segments else {}
    return expected_of(oracle, {"attention": "attentions"}, labels, config.pad_id, **inputs)


def found_of(model, batch):
    """Return what outputs_of returns, computed here, and leave the gradients in the model."""
    ids, segment_ids, labels = batch
    logits, cache = model.forward(ids, segment_ids if model.config.n_segments else None)
    loss, loss_cache = cross_entropy(logits, labels, pad_id=model.config.pad_id)
    model.backward(cross_entropy_backward(logits.dtype.type(1), loss_cache), cache)
    weights = np.stack([layer.self_attention.attention.weights for layer in cache.encoder.layers])
    return {"logits": logits, "loss": loss, "attention": weights}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["bert", "distilbert"])
def test_logits_attention_loss_and_gradients(name, seed, dtype, tmp_path):
    """In float64 all agree to 1e-10, from files of any dtype; in float32, what forward computes, to 1e-5."""
    stored = dtype if dtype == "float32" else None
    oracle = save_oracle(random_oracle(name, seed), tmp_path, seed=seed, dtype=stored)
    oracle = oracle.to(getattr(torch, dtype))
    loaded = load_folder(tmp_path, dtype)
    assert loaded.model.values.dtype == dtype
    batch = random_batch(loaded.model.config, seed)
    found, expected = found_of(loaded.model, batch), outputs_of(oracle, loaded.model.config, batch)
    assert larger(1e-10 if dtype == "float64" else 1e-5, found, expected) == {}
    assert dtype == "float32" or larger(1e-10, *gradients(loaded, oracle)) == {}


def test_an_old_file_with_gamma_beta_a_pooler_and_copies_of_tied_tensors(tmp_path):
    """BertForPreTraining saves the pooler and the layer of next sentence prediction as well."""
    oracle = transformers.BertForPreTraining(random_oracle("bert", 0).config)
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
    ids, segment_ids, _ = random_batch(model.config, 0)
    mask = torch.tensor(ids != model.config.pad_id)
    logits = oracle(torch.tensor(ids), mask, torch.tensor(segment_ids)).prediction_logits
    np.testing.assert_allclose(model(ids, segment_ids), logits.detach().numpy(), rtol=1e-10, atol=1e-12)
