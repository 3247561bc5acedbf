"""Hugging Face's BERT as oracle: logits and the gradient of every parameter to 1e-10, in float64.

The weights are random. Some tokens belong to the second segment, and one sentence has padding.
"""

import numpy as np
import pytest
from hugging_face_oracles import by_our_names, larger

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.interop.families.bert import BERT
from npformer.interop.settings_file import Settings
from npformer.models.bert import Bert, BertConfig

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

PAD = 0
IDS = np.array([[2, 5, 8, 7, 3, 4], [4, 8, 3, PAD, PAD, PAD]])
SEGMENT_IDS = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]])
TARGETS = np.array([[PAD, 5, 6, PAD, 3, PAD], [PAD, 7, PAD, PAD, PAD, PAD]])  # the hidden tokens
SIZES = {
    "vocab_size": 9,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 8,
}
MODELS = {
    "BERT": {},
    "activation of Google's later code": {"hidden_act": "gelu_new"},
    "three segments": {"type_vocab_size": 3},
}


def make_oracle(settings):
    """Return a float64 model of Hugging Face with random values of all parameters, norms and biases too."""
    oracle = transformers.BertForMaskedLM(transformers.BertConfig(**(SIZES | settings))).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in oracle.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return oracle


def config_of(settings):
    """Return our configuration for the settings of an oracle."""
    return BERT.config_of(Settings(settings.to_dict()))


def results(oracle):
    """Return the logits and the gradient of each parameter, those of npformer and those of the oracle."""
    theirs = oracle(
        input_ids=torch.tensor(IDS),
        token_type_ids=torch.tensor(SEGMENT_IDS),
        attention_mask=torch.tensor(IDS != PAD),
    ).logits
    torch.nn.functional.cross_entropy(
        theirs.flatten(0, 1), torch.tensor(TARGETS).flatten(), ignore_index=PAD
    ).backward()
    named = dict(oracle.named_parameters())  # a tied parameter occurs once
    config = config_of(oracle.config)
    model = Bert(config, dtype=np.float64)
    values = {name: parameter.detach().numpy() for name, parameter in named.items()}
    model.load_state_dict(by_our_names(BERT, config, values))
    logits, cache = model.forward(IDS, SEGMENT_IDS)
    _, loss_cache = cross_entropy(logits, TARGETS, pad_id=PAD)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    found = {"logits": logits} | {name: parameter.grad for name, parameter in model.named_parameters()}
    grads = by_our_names(BERT, config, {name: each.grad.numpy() for name, each in named.items()})
    return found, {"logits": theirs.detach().numpy()} | grads


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_logits_and_gradients_in_float64(settings):
    assert larger(1e-10, *results(make_oracle(settings))) == {}


def test_the_defaults_are_those_of_bert_base():
    assert config_of(transformers.BertConfig()) == BertConfig(d_ff=4 * 768)
