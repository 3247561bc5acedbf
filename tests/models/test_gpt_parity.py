"""Hugging Face's GPT-2, Llama and Qwen2 as oracles: logits and the gradient of every parameter to 1e-10.

The weights are random. GPT-2 computes in float64 throughout. In Llama and Qwen2, the RMS norm and the tables
of the rotary positions are float32 even in a float64 model. Here they are replaced by the same formulas in
float64. PyTorch's fused attention computes its softmax in the dtype of its arguments. The models as they
stand, with the float32 softmax of the eager attention too, agree to 1e-5.
"""

import importlib

import numpy as np
import pytest
from hugging_face_oracles import by_our_names, larger

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.interop.families import FAMILIES
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

IDS = np.array([[2, 5, 6, 7, 5, 1, 0], [4, 8, 3, 0, 0, 2, 8]])
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 8}
LLAMA = {
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 8,
}
MODELS = {
    "gpt2": ("GPT2", GPT2),
    "llama": ("Llama", LLAMA),
    "llama, tied": ("Llama", LLAMA | {"tie_word_embeddings": True, "num_key_value_heads": 1}),
    "qwen2": ("Qwen2", LLAMA | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
}


def make_oracle(family, settings, attention):
    """Return a float64 model of Hugging Face with random values of all parameters, norms and biases too."""
    modeling = importlib.import_module(f"transformers.models.{family.lower()}.modeling_{family.lower()}")
    config = getattr(modeling, f"{family}Config")(
        vocab_size=9, bos_token_id=None, eos_token_id=None, pad_token_id=None, **settings
    )
    config._attn_implementation = attention
    name = f"{family}LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    oracle = getattr(modeling, name)(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in oracle.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return oracle


def compute_in_float64(monkeypatch, family):
    """Replace the functions of Llama or Qwen2 that compute in float32 by the same formulas in float64."""
    name = family.lower()
    modeling = importlib.import_module(f"transformers.models.{name}.modeling_{name}")

    def rms_norm(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon)

    def rotary_tables(self, x, position_ids):
        config = self.config
        width = config.hidden_size // config.num_attention_heads
        powers = torch.arange(0, width, 2, dtype=torch.float64) / width
        angles = position_ids[..., None] * config.rope_parameters["rope_theta"] ** -powers
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()

    monkeypatch.setattr(getattr(modeling, f"{family}RMSNorm"), "forward", rms_norm)
    monkeypatch.setattr(getattr(modeling, f"{family}RotaryEmbedding"), "forward", rotary_tables)


def config_of(oracle):
    """Return the family of an oracle, and our configuration of it."""
    family = FAMILIES.find(oracle.config.model_type)
    return family, family.config_of(Settings(oracle.config.to_dict()))


def results(oracle):
    """Return the logits and the gradient of each parameter, those of npformer and those of the oracle."""
    theirs = oracle(torch.tensor(IDS[:, :-1])).logits
    targets = torch.tensor(IDS[:, 1:]).reshape(-1)
    torch.nn.functional.cross_entropy(theirs.reshape(-1, theirs.shape[-1]), targets).backward()
    named = dict(oracle.named_parameters())  # a tied parameter occurs once
    family, config = config_of(oracle)
    model = GPT(config, dtype=np.float64)
    values = {name: parameter.detach().numpy() for name, parameter in named.items()}
    model.load_state_dict(by_our_names(family, config, values))
    logits, cache = model.forward(IDS[:, :-1])
    _, loss_cache = cross_entropy(logits, IDS[:, 1:])
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    found = {"logits": logits} | {name: parameter.grad for name, parameter in model.named_parameters()}
    grads = by_our_names(family, config, {name: each.grad.numpy() for name, each in named.items()})
    return found, {"logits": theirs.detach().numpy()} | grads


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_gradients_in_float64(monkeypatch, name):
    family, settings = MODELS[name]
    if family != "GPT2":
        compute_in_float64(monkeypatch, family)
    assert larger(1e-10, *results(make_oracle(family, settings, "sdpa"))) == {}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "gpt2"])
def test_logits_and_gradients_of_the_models_as_they_stand(name):
    found, expected = results(make_oracle(*MODELS[name], "eager"))
    assert larger(1e-5, found, expected) == {}
    assert larger(1e-10, found, expected)  # otherwise the float64 test above would patch needlessly


def test_qwen2_has_biases_of_queries_keys_and_values_alone():
    _, config = config_of(make_oracle(*MODELS["qwen2"], "sdpa"))
    names = [name for name, _ in GPT(config).named_parameters() if name.endswith("bias")]
    assert names == [f"layers.{i}.attention.query_key_value.bias" for i in range(2)]
