"""BERTs with every head, and RoBERTas: outputs, attention and all gradients agree with transformers."""

import os

import numpy as np
import pytest
from hugging_face_oracles import (
    LENGTH,
    SEEDS,
    gradients_by_our_names,
    larger,
    random_encoder,
    save_oracle,
)

from npformer.interop import load_folder
from npformer.models.registry import attention_arrays

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.torch

SEEDS = SEEDS if os.environ.get("NPFORMER_NIGHTLY") else SEEDS[:1]
HEADS = {  # our head, and the outputs that are ours side by side
    "Model": ("none", ["last_hidden_state"]),
    "ForMaskedLM": ("tokens", ["logits"]),
    "ForSequenceClassification": ("text classes", ["logits"]),
    "ForTokenClassification": ("token classes", ["logits"]),
    "ForQuestionAnswering": ("token classes", ["start_logits", "end_logits"]),
}
KINDS = ("Bert", "DistilBert", "Roberta", "XLMRoberta", "Camembert")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_attention_and_gradients(kind, head, seed, tmp_path):
    rng = np.random.default_rng(seed)
    oracle = save_oracle(random_encoder(kind, head, rng), tmp_path, seed=seed)
    loaded = load_folder(tmp_path, np.float64)
    config = loaded.model.config
    assert config.head == HEADS[head][0]

    ids = rng.integers(config.vocab_size, size=(3, LENGTH))
    ids[ids == config.pad_id] = 5
    ids[1, 3:] = ids[2, 6:] = config.pad_id
    segment_ids = rng.integers(config.n_segments, size=ids.shape) if config.n_segments else None
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(ids != config.pad_id)}
    if segment_ids is not None:
        inputs["token_type_ids"] = torch.tensor(segment_ids)
    outputs = oracle(**inputs, output_attentions=True)
    theirs = [getattr(outputs, name) for name in HEADS[head][1]]
    theirs = theirs[0] if len(theirs) == 1 else torch.stack(theirs, -1)
    ours, cache = loaded.model.forward(ids, segment_ids)
    gradient = rng.standard_normal(ours.shape)
    if ours.ndim == 3:
        gradient[ids == config.pad_id] = 0
    (theirs * torch.tensor(gradient)).sum().backward()
    loaded.model.backward(gradient, cache)

    tensors = {}
    for name, parameter in oracle.named_parameters(remove_duplicate=False):
        current = loaded.family.tensor_name(name, config)
        if current is not None and parameter.grad is not None:
            tensors[current] = parameter.grad.numpy()
    expected = gradients_by_our_names(loaded.family, config, tensors)
    expected |= {"output": theirs.detach().numpy(), "self": torch.stack(outputs.attentions).detach().numpy()}
    found = {name: parameter.grad for name, parameter in loaded.model.named_parameters()}
    assert larger(1e-10, found | {"output": ours} | attention_arrays(cache), expected) == {}
