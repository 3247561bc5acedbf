"""Folders that transformers wrote: logits, attention, loss and all gradients agree with transformers.

The configurations and the weights are random. In float64 the largest difference is 1e-10. GPT-2 computes in
float64 throughout. In Llama and Qwen2, the RMS norm, the tables of the rotary positions and the softmax of
the attention that returns its weights are float32 even in a float64 model: here they are replaced by the same
formulas in float64. The models as they stand agree to 1e-5.
"""

import copy
import json

import numpy as np
import pytest
from hugging_face_oracles import SEEDS, by_their_names, larger

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.interop import load_folder

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from gpt_oracles import FAMILIES, compute_in_float64, make_oracle, random_settings  # noqa: E402  it imports torch

pytestmark = pytest.mark.torch

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
every_family = pytest.mark.parametrize("family", FAMILIES)


def outputs_and_gradients(oracle, loaded):
    """Return logits, attention, loss and all gradients by name, ours and those of transformers."""
    ids = np.random.default_rng(1).integers(0, oracle.config.vocab_size, (2, 7))
    found = oracle(torch.tensor(ids), output_attentions=True)
    # with labels=, transformers computes the loss in float32
    predictions, targets = found.logits[:, :-1].flatten(0, 1), torch.tensor(ids[:, 1:]).flatten()
    their_loss = torch.nn.functional.cross_entropy(predictions, targets)
    their_loss.backward()
    logits, cache = loaded.model.forward(ids)
    loss, loss_cache = cross_entropy(logits[:, :-1], ids[:, 1:])
    dlogits = np.zeros_like(logits)
    dlogits[:, :-1] = cross_entropy_backward(logits.dtype.type(1), loss_cache)
    loaded.model.backward(dlogits, cache)
    pairs = {"logits": (logits, found.logits), "loss": (np.array(loss), their_loss)}
    for i, weights in enumerate(found.attentions):
        pairs[f"attention {i}"] = (cache.layers[i].self_attention.attention.weights, weights)
    theirs = dict(oracle.named_parameters())
    grads = {name: parameter.grad for name, parameter in loaded.model.named_parameters()}
    for name, view in by_their_names(loaded.family, loaded.model.config, grads).items():
        pairs[name] = (view, theirs.pop(name).grad)
    assert not theirs  # every parameter of the oracle was compared
    ours = {name: pair[0] for name, pair in pairs.items()}
    return ours, {name: pair[1].detach().numpy() for name, pair in pairs.items()}


@every_family
@pytest.mark.parametrize("seed", SEEDS)
def test_a_folder_that_transformers_wrote(monkeypatch, tmp_path, family, seed):
    dtype, is_sharded = DTYPES[seed % 4], seed % 3 == 0
    oracle = make_oracle(family, random_settings(family, np.random.default_rng(seed)), dtype)
    stored = copy.deepcopy(oracle).to(dtype)
    stored.save_pretrained(tmp_path, max_shard_size="0.5KB" if is_sharded else "1GB")
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == is_sharded
    if family != "gpt2":
        both = outputs_and_gradients(oracle, load_folder(tmp_path, np.float64))
        assert larger(1e-5, *both) == {}
        assert larger(1e-10, *both) != {}  # otherwise the comparison below would patch needlessly
        oracle.zero_grad()
        compute_in_float64(monkeypatch, family)
    assert larger(1e-10, *outputs_and_gradients(oracle, load_folder(tmp_path, np.float64))) == {}


@every_family
@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_in_float32(tmp_path, family, seed):
    oracle = make_oracle(family, random_settings(family, np.random.default_rng(seed))).float()
    oracle.save_pretrained(tmp_path)
    loaded = load_folder(tmp_path)
    assert loaded.model.values.dtype == np.float32
    different = larger(1e-5, *outputs_and_gradients(oracle, loaded))
    assert not [name for name in different if name.startswith(("logits", "attention"))]


@every_family
def test_the_settings_of_our_configuration_are_those_of_the_folder(tmp_path, family):
    oracle = make_oracle(family, random_settings(family, np.random.default_rng(3)))
    oracle.save_pretrained(tmp_path)
    loaded = load_folder(tmp_path)
    theirs = json.loads((tmp_path / "config.json").read_text())
    ours = loaded.family.settings_of(loaded.model.config)
    dropouts = {name for name in ours if name.endswith(("pdrop", "dropout"))}
    width = theirs.get("n_inner") or 4 * theirs.get("n_embd", 0)
    theirs |= {"n_inner": width, "head_dim": ours.get("head_dim")}  # null in the file
    assert {name: theirs[name] for name in ours if name not in dropouts} == {
        name: value for name, value in ours.items() if name not in dropouts
    }
