"""Models of Hugging Face as oracles: random values, the folders that they save, and comparisons with ours."""

import copy
import os

import numpy as np
import pytest

from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.registry import attention_layers

IGNORED = -1  # a target without a loss
LENGTH = 8  # of the sentences of encoders, and of encoder-decoder models
DTYPES = ("float64", "float32", "float16", "bfloat16")
SEEDS = range(22 if os.environ.get("NPFORMER_NIGHTLY") else 6)  # of random configurations, in every dtype


def random_encoder(kind, head, rng):
    """Return a random small BERT, DistilBERT or RoBERTa of transformers.

    Args:
        kind: The beginning of the names of its classes, such as "Bert".
        head: Their end, such as "ForMaskedLM".
        rng: The generator of the settings.
    """
    transformers = pytest.importorskip("transformers")
    n_heads, d_head = int(rng.integers(1, 5)), int(rng.integers(4, 9))
    activation = str(rng.choice(["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"]))
    if "oberta" in kind or kind == "Camembert":
        activation = "gelu"  # their head has it in any case
    shared = {
        "vocab_size": int(rng.integers(12, 20)),
        "max_position_embeddings": int(rng.integers(LENGTH + 5, 20)),
        "pad_token_id": int(rng.integers(5)),
        "num_labels": 2 if head == "ForQuestionAnswering" else int(rng.integers(2, 6)),
        "attn_implementation": "eager",
    }
    sizes = n_heads * d_head, n_heads, int(rng.integers(1, 4)), int(rng.integers(5, 30)), activation
    if kind == "DistilBert":
        names = ("dim", "n_heads", "n_layers", "hidden_dim", "activation")
    else:
        names = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "hidden_act")
        shared |= {"type_vocab_size": int(rng.integers(1, 4))}
        shared |= {"layer_norm_eps": float(rng.choice([1e-12, 1e-5]))}
    config = getattr(transformers, f"{kind}Config")(**shared, **dict(zip(names, sizes, strict=True)))
    return getattr(transformers, kind + head)(config)


def save_oracle(oracle, folder, *, seed, dtype=None, noise=0.3):
    """Give an oracle random values, save it in one or several files, and return it in float64.

    Args:
        oracle: The model. Its norms and biases get random values too, and its final_logits_bias.
        folder: The folder.
        seed: The seed of the values. It also decides how many files are saved.
        dtype: The name of the dtype of the files; if it is None, the seed decides. The returned model has the
            same, rounded values.
        noise: The deviation of the numbers that are added to the initial values.
    """
    dtype, is_sharded = dtype or DTYPES[seed % len(DTYPES)], seed % 3 == 0
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(seed)
    values = [parameter for parameter in oracle.parameters() if parameter.requires_grad]
    if hasattr(oracle, "final_logits_bias"):
        values.append(oracle.final_logits_bias)
    with torch.no_grad():
        for value in values:
            value += noise * torch.randn(value.shape, generator=generator)
            value.data = value.data.to(getattr(torch, dtype))
    stored = copy.deepcopy(oracle).to(getattr(torch, dtype))
    stored.save_pretrained(folder, max_shard_size="0.5KB" if is_sharded else "1GB")
    assert (len(list(folder.glob("*.safetensors"))) > 1) == is_sharded
    return oracle.double().eval()


def expected_of(oracle, maps, targets, **inputs):
    """Return the logits, the loss and the attention weights of an oracle, which gets its gradients.

    Args:
        oracle: The model.
        maps: A dict from our names of weights to those of transformers.
        targets: Token ids, or IGNORED where there is no loss.
        inputs: The arrays that the model takes.
    """
    torch = pytest.importorskip("torch")
    outputs = oracle(**{name: torch.tensor(x) for name, x in inputs.items()}, output_attentions=True)
    logits, targets = outputs.logits.flatten(0, 1), torch.tensor(targets).flatten()
    # with labels=, some models of transformers compute the loss in float32
    loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=IGNORED)
    loss.backward()
    found = {"logits": outputs.logits, "loss": loss}
    found |= {ours: torch.stack(getattr(outputs, theirs)) for ours, theirs in maps.items()}
    return {name: tensor.detach().numpy() for name, tensor in found.items()}


def found_of(model, maps, targets, *inputs):
    """Return what `expected_of` returns, computed by our model, which gets its gradients."""
    logits, cache = model.forward(*inputs)
    loss, loss_cache = cross_entropy(logits, targets, pad_id=IGNORED)
    model.backward(cross_entropy_backward(logits.dtype.type(1), loss_cache), cache)
    return {
        "logits": logits,
        "loss": loss,
        **{kind: np.stack(attention_layers(cache, kind)) for kind in maps},
    }


def by_their_names(family, config, arrays):
    """Return arrays by the names of transformers, in their shapes.

    Args:
        family: The family of the model.
        config: Our configuration.
        arrays: A dict from the names of our parameters to arrays, such as values.
    """
    tensors = {}
    for row in family.rows(config):
        row.write(arrays[row.ours], tensors)
    return tensors


def gradients_by_our_names(family, config, tensors):
    """Return the gradients of transformers by the names of our parameters.

    Args:
        family: The family of the model.
        config: Our configuration.
        tensors: A dict from the names of transformers to gradients, of which none may be left over. Rows that
            are no parameters of ours have the gradient 0.
    """
    ours, left = {}, {name: tensor.copy() for name, tensor in tensors.items()}
    for row in family.rows(config):
        ours[row.ours] = np.empty(row.shape)
        for name, first, view in row.pieces(ours[row.ours]):
            view[...] = tensors[name][first : first + len(view)]
            left[name][first : first + len(view)] = 0
    assert not any(gradient.any() for gradient in left.values())
    return ours


def as_saved(oracle, tensors):
    """Return tensors by their names in files: transformers joins those of experts when it loads them."""
    if not any(".experts." in name for name in tensors):
        return tensors
    conversion = pytest.importorskip("transformers.core_model_loading")
    return conversion.revert_weight_conversion(oracle, tensors)


def gradients(loaded, oracle):
    """Return the gradients of our parameters and those of the oracle, both by our names.

    The oracle's final_logits_bias is a buffer, and has a gradient if the test asked for it. A fused bias is
    compared as a whole, because the gradient of the biases of keys is 0: they change no attention weight.
    """
    config = loaded.model.config
    tensors = dict(oracle.named_parameters()) | dict(oracle.named_buffers())
    theirs = {name: tensor.grad for name, tensor in tensors.items() if tensor.grad is not None}
    theirs = as_saved(oracle, theirs)
    theirs = {loaded.family.tensor_name(name, config): grad.numpy() for name, grad in theirs.items()}
    ours = {name: parameter.grad for name, parameter in loaded.model.named_parameters()}
    return ours, gradients_by_our_names(loaded.family, config, theirs)


def differences(found, expected):
    """Return the largest difference of each array from the expected one, relative to its largest number.

    An array of zeros, such as the gradient of an expert that no token has chosen, must be found as zeros.
    """
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert np.shape(array) == np.shape(expected[name]), name
    return {
        name: np.abs(found[name] - array).max() / (np.abs(array).max() or 1)
        for name, array in expected.items()
    }


def larger(bound, found, expected):
    """Return the differences that are larger than a bound. A test asserts that there are none."""
    return {name: each for name, each in differences(found, expected).items() if not each <= bound}
