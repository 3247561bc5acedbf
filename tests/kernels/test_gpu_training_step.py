"""A training step with the kernels. Those for CuPy run on a GPU with --backend cupy, else on a stand-in."""

import importlib
import inspect
import sys

import numpy as np
import pytest
import strict_cupy
from kernel_comparison import CPU, GPU, dtypes, rng

from npformer import TransformerConfig, kernels
from npformer.backend import generator_near, is_cupy, to_backend
from npformer.kernels import gpu, plain_pairs
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.registry import build
from npformer.training.optimizer import Adam

pytestmark = pytest.mark.usefixtures("device")

CONFIG = {"source_vocab": 40, "target_vocab": 40, "d_model": 32, "d_ff": 48, "n_heads": 4, "n_layers": 2}
DROPOUT = {"dropout": 0.1, "attention_dropout": 0.2, "feed_forward_dropout": 0.2}
# the parts of Llama, with a window, and the parts of GPT-2. Two queries share a key
GPT_SIZE = {"vocab_size": 40, "d_model": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "context": 8}
LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False, "window": 3}
GPT_2 = {"activation": "gelu_tanh"}


def one_step(model, generator, tokens=None):
    """Compute forward, loss, backward and Adam with the kernels. Return (loss, gradients, transfers)."""
    source, target = rng(1).integers(4, 40, (5, 9)), rng(2).integers(4, 40, (5, 7))
    source[0, 4:] = target[3, 2:] = 0
    return one_step_with((source, target), target, model, generator, tokens)


def one_step_with(inputs, target, model, generator, tokens=None):
    """Compute one_step with these token ids."""
    targets = to_backend(target, "cupy" if is_cupy(model.values) else "numpy")
    model.zero_grad()
    with strict_cupy.counted_transfers() as crossed:
        logits, cache = model.forward(*inputs, train=True, rng=generator)
        loss, loss_cache = kernels.cross_entropy(logits, targets, smoothing=0.1, pad_id=0, tokens=tokens)
        model.backward(kernels.cross_entropy_backward(1, loss_cache), cache)
        Adam(model).step(1e-3)
    return loss, model.grads, crossed


@pytest.mark.parametrize("on", [CPU, GPU], ids=["cpu", "gpu"])
@dtypes
@pytest.mark.parametrize("tied", ["all", "output", "none"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_whole_model_equals_the_plain_one_in_float64(on, dtype, tied, norm):
    config = TransformerConfig(
        **CONFIG, **DROPOUT, norm=norm, final_norm=True, tied=tied, fused_projections=tied != "none"
    )
    host = build(config, rng=rng(), dtype=np.float64).astype(dtype).astype(np.float64)
    model = build(config, rng=rng(), dtype=np.float64).astype(dtype).to(on.backend)
    with plain_pairs():
        loss, grads, _ = one_step(host, rng(3))
    device_loss, device_grads, _ = one_step(model, rng(3))
    on.agree([device_loss, device_grads], [loss, grads], dtype, 1e-5 if dtype is np.float32 else 1e-11)


def one_step_of_gpt(model, generator):
    """Compute one_step with a GPT."""
    ids = rng(1).integers(0, 40, (3, 9))
    return one_step_with((ids[:, :-1],), ids[:, 1:], model, generator)


def called_code(function, *args):
    """Return the code of all Python functions that run when a function is called."""
    code, before = set(), sys.getprofile()
    sys.setprofile(lambda frame, event, arg: code.add(frame.f_code))
    try:
        function(*args)
    finally:
        sys.setprofile(before)
    return code


@pytest.mark.parametrize(
    ("parts", "own"), [(LLAMA, {"rms_norm", "rotate", "swiglu"}), (GPT_2, {"layer_norm", "gelu_tanh"})]
)
def test_a_gpt_uses_the_kernel_of_each_pair_that_has_one(parts, own):
    model = GPT(GPTConfig(**GPT_SIZE, **parts, dropout=0.1), rng=rng()).to("cupy")
    called = called_code(one_step_of_gpt, model, generator_near(rng(3), model.values))
    pairs = {"linear", "embedding", "attention", "dropout", "cross_entropy", *own}
    expected = pairs | {f"{name}_backward" for name in pairs} | {"adam_update"}
    assert {name for name in gpu.__all__ if getattr(gpu, name).__code__ in called} == expected
    tables = kernels, importlib.import_module("npformer.kernels.dropout")  # kernels.dropout is the function
    chosen = {name: getattr(table, name) for table in tables for name in gpu.__all__ if hasattr(table, name)}
    assert set(chosen) == set(gpu.__all__)
    plain = [name for name, function in chosen.items() if inspect.unwrap(function).__code__ in called]
    # the kernel of an embedding calls its plain pair, and a dropout that drops nothing has no cache
    assert sorted(plain) == ["dropout_backward", "embedding"]


def test_only_the_ids_are_transferred_within_a_step(request):
    if request.config.getoption("--backend") == "cupy":
        pytest.skip("the stand-in counts what crosses")
    model = build(TransformerConfig(**CONFIG, **DROPOUT), rng=rng()).to("cupy")
    gpt = GPT(GPTConfig(**GPT_SIZE, **LLAMA, dropout=0.1), rng=rng()).to("cupy")
    for tokens in (None, 60):
        _, _, crossed = one_step(model, generator_near(rng(3), model.values), tokens)
        assert (crossed.to_host, crossed.to_device) == (0, 2)
    _, _, crossed = one_step_of_gpt(gpt, generator_near(rng(3), gpt.values))
    assert (crossed.to_host, crossed.to_device) == (0, 1)
