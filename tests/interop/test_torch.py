"""from_torch and to_torch, with PyTorch's own modules as the oracle: outputs and every gradient to 1e-12."""

import copy
import operator
import os
import re
from functools import partial, reduce

import numpy as np
import pytest
from paths import ROOT
from tiny import tiny_config

from npformer.errors import UserError
from npformer.models.transformer import Encoder, Transformer
from npformer.models.transformer.layers import layer_from_parts
from npformer.nn import MultiHeadAttention, Projection, RMSNorm, RotaryPositions
from npformer.nn.attention import RelativeAttention

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 - only where PyTorch is installed

from npformer.interop.torch import from_torch, to_torch  # noqa: E402  it stands below that line

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:enable_nested_tensor")]

NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))
KINDS = ("attention", "encoder layer", "decoder layer", "encoder", "decoder", "transformer")
ACTIVATIONS = ("relu", "gelu", nn.ReLU(), nn.GELU(approximate="tanh"), nn.functional.silu)


def random_module(kind, rng):
    """Return a module of a kind with random options, whose parameters are all random, in float64."""
    n_heads = int(rng.integers(1, 5))
    d_model = n_heads * int(rng.integers(1, 5))
    bias, batch_first = bool(rng.integers(2)), bool(rng.integers(2))
    if kind == "attention":
        keys, values = (None if rng.integers(2) else int(rng.integers(1, 9)) for _ in range(2))
        widths = {"kdim": keys, "vdim": values}
        module = nn.MultiheadAttention(d_model, n_heads, 0.1, bias, batch_first=batch_first, **widths)
    else:
        settings = {
            "dim_feedforward": int(rng.integers(1, 13)),
            "dropout": 0.1,
            "activation": ACTIVATIONS[rng.integers(len(ACTIVATIONS))],
            "layer_norm_eps": 10.0 ** -rng.integers(1, 7),
            "batch_first": batch_first,
            "norm_first": bool(rng.integers(2)),
            "bias": bias,
        }
        module = transformer_part(kind, d_model, n_heads, int(rng.integers(1, 4)), rng, settings)
    module = module.double().eval()
    for parameter in module.parameters():
        parameter.data = torch.from_numpy(rng.standard_normal(tuple(parameter.shape)))
    return module


def transformer_part(kind, d_model, n_heads, n_layers, rng, settings):
    """Return a layer, a stack of layers with or without a norm, or a whole nn.Transformer."""
    norm = nn.LayerNorm(d_model, 1e-3) if rng.integers(2) else None
    if kind.startswith("encoder"):
        layer = nn.TransformerEncoderLayer(d_model, n_heads, **settings)
        return layer if kind == "encoder layer" else nn.TransformerEncoder(layer, n_layers, norm)
    if kind.startswith("decoder"):
        layer = nn.TransformerDecoderLayer(d_model, n_heads, **settings)
        return layer if kind == "decoder layer" else nn.TransformerDecoder(layer, n_layers, norm)
    return nn.Transformer(d_model, n_heads, n_layers, 1 + n_layers % 2, **settings)


def attention_of(module):
    """Return the first attention of a module."""
    return next(part for part in module.modules() if isinstance(part, nn.MultiheadAttention))


def random_inputs(kind, module, rng):
    """Return the arrays (B, ., D) of the inputs, and the masks True at pairs that may attend, or None.

    The masks are (T, T) causal for the queries' own sequence, and (B, S) for the padding of the other one.
    """
    attention = attention_of(module)
    d = attention.embed_dim
    b, t, s = (int(n) for n in rng.integers(1, 6, 3))
    if kind.startswith("encoder"):
        s = t
    shapes = {
        "attention": [(b, t, d), (b, s, attention.kdim), (b, s, attention.vdim)],
        "encoder": [(b, t, d)],
        "decoder": [(b, t, d), (b, s, d)],
        "transformer": [(b, s, d), (b, t, d)],
    }[kind.split()[0]]
    causal = np.tril(np.ones((t, t), bool)) if rng.integers(2) else None
    tokens = np.arange(s) < rng.integers(1, s + 1, (b, 1)) if rng.integers(2) else None
    return [rng.standard_normal(shape) for shape in shapes], causal, tokens


def run_torch(kind, module, tensors, causal, tokens):
    """Run a module with PyTorch's masks, which are True where a query may not attend. Return (B, T, D)."""
    batch_first = attention_of(module).batch_first
    if not batch_first:
        tensors = [tensor.transpose(0, 1) for tensor in tensors]
    causal, padding = (None if mask is None else torch.from_numpy(~mask) for mask in (causal, tokens))
    masks = {
        "attention": {"key_padding_mask": padding},
        "encoder": {"src_key_padding_mask": padding},
        "decoder": {"tgt_mask": causal, "memory_key_padding_mask": padding},
    }
    masks["transformer"] = masks["encoder"] | masks["decoder"]
    if kind.startswith("encoder"):
        tensors = [*tensors, causal]  # its mask is src_mask in a layer, and mask in a stack
    y = module(*tensors, **masks[kind.split()[0]])
    y = y[0] if kind == "attention" else y
    return y if batch_first else y.transpose(0, 1)


def run_ours(kind, layer, arrays, causal, tokens):
    """Run the layer of npformer with the same masks, and return its output and its cache."""
    keys = None if tokens is None else tokens[:, None, None, :]
    if kind == "attention":
        return layer.forward(*arrays, mask=keys)
    if kind.startswith("encoder"):
        both = [mask for mask in (causal, keys) if mask is not None]
        return layer.forward(*arrays, reduce(np.logical_and, both) if both else None)
    return layer.forward(*arrays, *([keys] if kind == "transformer" else []), causal, keys)


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-12, atol=1e-12)


def gradients_as_a_layer(module):
    """Return the layer whose values are the gradients of the module's parameters."""
    moved = copy.deepcopy(module)
    for parameter, original in zip(moved.parameters(), module.parameters(), strict=True):
        parameter.data = original.grad
    return from_torch(moved)


@pytest.mark.parametrize("seed", range(8 if NIGHTLY else 4))
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_gradients_and_the_round_trip(kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    module = random_module(kind, rng)
    arrays, causal, tokens = random_inputs(kind, module, rng)
    tensors = [torch.from_numpy(array).requires_grad_() for array in arrays]
    theirs = run_torch(kind, module, tensors, causal, tokens)
    layer = from_torch(module)
    ours, cache = run_ours(kind, layer, arrays, causal, tokens)
    assert_same(ours, theirs)

    dy = rng.standard_normal(ours.shape)
    theirs.backward(torch.from_numpy(dy))
    gradients = layer.backward(dy, cache)
    for ours, tensor in zip(gradients if isinstance(gradients, tuple) else [gradients], tensors, strict=True):
        assert_same(ours, tensor.grad)
    expected = dict(gradients_as_a_layer(module).named_parameters())
    assert layer.count_parameters() == sum(p.numel() for p in module.parameters())
    for name, parameter in layer.named_parameters():
        np.testing.assert_allclose(parameter.grad, expected[name].value, rtol=1e-12, atol=1e-12, err_msg=name)

    back = to_torch(layer, batch_first=attention_of(module).batch_first)
    assert_equal_modules(back, module)
    for train in (False, True):  # with dropout the second time
        outputs = []
        for one in (back, module):
            torch.manual_seed(7)
            outputs.append(run_torch(kind, one.train(train), tensors, causal, tokens))
        assert torch.equal(*outputs)


def assert_equal_modules(one, other):
    """Check that two modules have the same weights, bit for bit, under the same names."""
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, tensor in one.state_dict().items():
        assert tensor.dtype == other.state_dict()[name].dtype
        assert torch.equal(tensor, other.state_dict()[name]), name
        assert one.state_dict()[name].is_contiguous()


@pytest.mark.parametrize("norm_first", [False, True])
def test_each_dropout_keeps_its_place(norm_first):
    module = nn.TransformerDecoderLayer(4, 2, 6, batch_first=True, norm_first=norm_first)
    places = [module.self_attn, module.multihead_attn]
    for place, p in zip(places, (0.1, 0.2), strict=True):
        place.dropout = p
    for number, p in enumerate((0.3, 0.4, 0.5, 0.6)):
        getattr(module, f"dropout{number or ''}").p = p
    layer = from_torch(module)
    assert (layer.self_attention.dropout, layer.cross.dropout, layer.feed_forward.dropout) == (0.1, 0.2, 0.3)
    names = "dropout1.p dropout2.p dropout3.p" if norm_first else "norm1.dropout norm2.dropout norm3.dropout"
    assert operator.attrgetter(*names.split())(layer) == (0.4, 0.5, 0.6)
    assert repr(to_torch(layer)) == repr(module)


def test_the_dtype_is_kept_or_chosen_and_the_weights_are_copies():
    module = nn.Linear(3, 2)
    layer = from_torch(module)
    assert layer.weight.value.dtype == np.float32
    layer.weight.value[:] = 0
    assert module.weight.any()
    back = to_torch(layer)
    layer.weight.value[:] = 1
    assert not back.weight.any()
    assert from_torch(module, dtype="float64").weight.value.dtype == np.float64
    for dtype in ("foo", int):
        with pytest.raises(UserError, match="choose one of float32, float64"):
            from_torch(module, dtype=dtype)
    half = from_torch(module.bfloat16())
    assert half.weight.value.dtype == np.float32
    np.testing.assert_array_equal(half.weight.value, module.weight.detach().float().numpy().T)


def test_tensors_that_several_parts_share_stay_shared():
    """A stack that applies one layer twice has the parameters of one layer, and their summed gradients."""
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, dtype=torch.float64).eval()
    module = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    module.layers.append(module.layers[0])
    ours = from_torch(module)
    assert ours.count_parameters() == from_torch(layer).count_parameters()
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    tensor = torch.from_numpy(x).requires_grad_()
    y, cache = ours.forward(x)
    module(tensor).sum().backward()
    assert_same(ours.backward(np.ones_like(y), cache), tensor.grad)
    assert_same(ours[0].self_attention.key.weight.grad.T, module.layers[0].self_attn.in_proj_weight.grad[4:8])
    back = to_torch(ours)
    assert back.layers[0].self_attn.in_proj_weight is back.layers[1].self_attn.in_proj_weight


@pytest.mark.parametrize("norm", ["pre", "post", "n-da", "-dan"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_model_of_npformer_in_pytorch(norm, fused):
    """The encoder and the decoder of a Transformer, whose projections may be fused."""
    config = tiny_config(norm=norm, final_norm=True, fused_projections=fused, activation="gelu_tanh")
    model = Transformer(config, dtype=np.float64)
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((2, 5, config.d_model)), rng.standard_normal((2, 3, config.d_model))
    tensors = torch.from_numpy(x), torch.from_numpy(target)
    memory = to_torch(model.encoder).eval()(tensors[0])
    assert_same(model.encoder(x), memory)
    assert_same(model.decoder(target, model.encoder(x)), to_torch(model.decoder).eval()(tensors[1], memory))


class OwnLayer(nn.TransformerEncoderLayer):
    """A subclass, which may compute anything."""


def encoder(**changes):
    """Return an nn.TransformerEncoder with some attributes of its first layer changed."""
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
    module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for name, value in changes.items():
        setattr(module.layers[0], name, value)
    return module


def hooked():
    module = nn.Linear(2, 2)
    module.register_forward_pre_hook(lambda module, inputs: None)
    return module


def with_two_orders():
    module = encoder()
    module.layers[1].self_attn.batch_first = False
    return module


FROM_TORCH = {
    "the module has add_bias_kv=True, a key that": lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True),
    "the module has add_zero_attn=True, a key": lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True),
    "the module is of class OwnLayer, a subclass of TransformerEncoderLayer, and": lambda: OwnLayer(4, 2),
    "the part layers.0 is of class OwnLayer, a subclass": lambda: nn.TransformerEncoder(OwnLayer(4, 2), 1),
    "the module is of class GRU, and from_torch knows only what nn.MultiheadAttention": lambda: nn.GRU(4, 4),
    "the part layers.0.norm2 is of class BatchNorm1d, and": lambda: encoder(norm2=nn.BatchNorm1d(4)),
    "layers.0.norm1 is a LayerNorm": lambda: encoder(norm1=nn.LayerNorm(4, elementwise_affine=False)),
    "the module is a LayerNorm over 2 axes with elementwise_affine=True": lambda: nn.LayerNorm((2, 4)),
    "the part layers.0.dropout1 is of class Identity, and": lambda: encoder(dropout1=nn.Identity()),
    "the part layers.0 has an activation that npformer does not": lambda: encoder(activation=torch.sin),
    "the part layers.0 has an activation that npformer": lambda: encoder(activation=partial(torch.sin)),
    "the part encoder is of class Linear": lambda: nn.Transformer(4, 2, custom_encoder=nn.Linear(4, 4)),
    "the module has hooks or a forward of its own, which may change its output: remove them": hooked,
    "the part layers.0 has hooks or a forward of its own": lambda: encoder(forward=print),
    "the parts of this TransformerEncoder differ in batch_first": with_two_orders,
    "the module has a weight on the device meta, without values": lambda: nn.Linear(2, 2, device="meta"),
    "the module has a weight of dtype torch.complex64": lambda: nn.Linear(2, 2, dtype=torch.complex64),
    "from_torch takes a PyTorch module and got a ndarray: give an nn.Module": lambda: np.ones(3),
}


def stack(**changes):
    return Encoder(tiny_config(**changes))


def with_rms_norm():
    model = stack(norm="pre", final_norm=True)
    model[1].norm1 = RMSNorm(model.norm.gain.shape[0])
    return model


ROTARY = RotaryPositions(2, 4)
TO_TORCH = {
    "the layer shares keys and values among heads, which": lambda: MultiHeadAttention(4, 2, n_kv_heads=1),
    "the layer has heads of a width other than d_model / n_h": lambda: MultiHeadAttention(4, 2, d_head=3),
    "the layer has values of another width than its keys": lambda: MultiHeadAttention(4, 2, d_value=3),
    "the layer has no output matrix, which nn.Multihead": lambda: MultiHeadAttention(4, 2, output=False),
    "the layer rotates queries and keys": lambda: MultiHeadAttention(4, 2, rotary=ROTARY),
    "the layer does not divide its scores by sqrt": lambda: MultiHeadAttention(4, 2, scale=False),
    "the part layers.0.self_attention replaces masked scores by finite": lambda: stack(mask_fill=-1e9),
    "the layer applies an activation to queries": lambda: MultiHeadAttention(4, 2, activation="relu"),
    "the layer is of class RelativeAttention: to_torch converts Multi": lambda: RelativeAttention(4, 2),
    "the layer is of class Transformer: to_torch converts Multi": lambda: Transformer(tiny_config()),
    "the layer is of class Projection: to_torch converts": lambda: Projection(4, [4], [2]),
    "the part layers.0 computes another seq": lambda: stack(norm="n-dna", final_norm=True),
    "the part layers.0.feed_forward has the activation 'none': to": lambda: stack(activation="none"),
    "the layer has no layers, and PyTorch cannot run such a stack": lambda: layer_from_parts(
        Encoder, layers=[], norm=None
    ),
    "the part layers.0.self_attention has heads of a width other": lambda: stack(n_heads=3, d_head=4),
    "the part layers.1.norm1 is of class RMSNorm: to_torch converts LayerNorm": with_rms_norm,
    "the layer is of class ndarray: to_torch converts MultiHeadAttention, EncoderLayer": lambda: np.ones(3),
}


@pytest.mark.parametrize(
    ("convert", "message", "make"),
    [(from_torch, *row) for row in FROM_TORCH.items()] + [(to_torch, *row) for row in TO_TORCH.items()],
)
def test_errors(convert, message, make):
    with pytest.raises(UserError, match=message) as raised:
        convert(make())
    assert str(raised.value).count(". ") == 0  # one sentence


def test_the_example_of_the_documentation_prints_what_it_shows(capsys):
    """The two blocks of code run one after the other, and each prints the block of text below it."""
    text = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
    section = re.search(r"^## PyTorch modules\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", section, re.DOTALL)
    names = {}
    for code, printed in examples:
        exec(code, names)
        assert capsys.readouterr().out == printed
    assert len(examples) == section.count("```python") == 2
