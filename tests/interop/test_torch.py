"""from_torch and to_torch, with PyTorch's own modules as the oracle: outputs and every gradient to 1e-12."""

import copy
import re
from functools import partial

import numpy as np
import pytest
from paths import ROOT
from tiny import tiny_config

import npformer
from npformer.errors import UserError
from npformer.models.transformer import Encoder, Transformer
from npformer.nn import Context, Linear, MultiHeadAttention, Projection, RMSNorm, RotaryPositions
from npformer.nn.attention import RelativeAttention

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 - only where PyTorch is installed

from npformer.interop.torch import from_torch, to_torch  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:enable_nested_tensor")]

KINDS = ("attention", "encoder layer", "decoder layer", "encoder", "decoder", "transformer")
ACTIVATIONS = ("relu", "gelu", nn.ReLU(), nn.GELU(approximate="tanh"), nn.functional.silu)


def random_module(kind, rng):
    """Return a module of a kind with random options, whose parameters are all random, in float64."""
    n_heads = int(rng.integers(1, 5))
    d_model = n_heads * int(rng.integers(1, 5))
    bias, batch_first = bool(rng.integers(2)), bool(rng.integers(2))
    if kind == "attention":
        widths = [None if rng.integers(2) else int(rng.integers(1, 9)) for _ in range(2)]
        module = nn.MultiheadAttention(
            d_model, n_heads, 0.1, bias, kdim=widths[0], vdim=widths[1], batch_first=batch_first
        )
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


def attentions_of(module):
    return [m for m in module.modules() if isinstance(m, nn.MultiheadAttention)]


def random_inputs(module, rng):
    """Return the arrays (B, ., D) of the inputs, and the masks True at pairs that may attend, or None.

    The masks are (T, T) causal for the queries' own sequence, and (B, S) for the padding of the other one.
    """
    attention = attentions_of(module)[0]
    b, t, s = (int(n) for n in rng.integers(1, 6, 3))
    if isinstance(module, nn.MultiheadAttention):
        shapes = [(b, t, attention.embed_dim), (b, s, attention.kdim), (b, s, attention.vdim)]
    elif isinstance(module, (nn.TransformerEncoder, nn.TransformerEncoderLayer)):
        shapes, s = [(b, t, attention.embed_dim)], t
    elif isinstance(module, nn.Transformer):
        shapes = [(b, s, attention.embed_dim), (b, t, attention.embed_dim)]
    else:
        shapes = [(b, t, attention.embed_dim), (b, s, attention.embed_dim)]
    causal = np.tril(np.ones((t, t), bool)) if rng.integers(2) else None
    tokens = np.arange(s) < rng.integers(1, s + 1, (b, 1)) if rng.integers(2) else None
    return [rng.standard_normal(shape) for shape in shapes], causal, tokens


def run_torch(module, tensors, causal, tokens):
    """Run a module with PyTorch's masks, which are True where a query may not attend. Return (B, T, D)."""
    if not attentions_of(module)[0].batch_first:
        tensors = [tensor.transpose(0, 1) for tensor in tensors]
    causal = None if causal is None else torch.from_numpy(~causal)
    padding = None if tokens is None else torch.from_numpy(~tokens)
    if isinstance(module, nn.MultiheadAttention):
        y, _ = module(*tensors, key_padding_mask=padding)
    elif isinstance(module, (nn.TransformerEncoder, nn.TransformerEncoderLayer)):
        y = module(*tensors, causal, src_key_padding_mask=padding)
    elif isinstance(module, nn.Transformer):
        masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        y = module(*tensors, tgt_mask=causal, **masks)
    else:
        y = module(*tensors, tgt_mask=causal, memory_key_padding_mask=padding)
    return y if attentions_of(module)[0].batch_first else y.transpose(0, 1)


def run_ours(layer, module, arrays, causal, tokens):
    """Run the layer of npformer with the same masks, and return its output and its cache."""
    keys = None if tokens is None else tokens[:, None, None, :]
    if isinstance(module, nn.MultiheadAttention):
        return layer.forward(*arrays, mask=keys)
    if isinstance(module, (nn.TransformerEncoder, nn.TransformerEncoderLayer)):
        both = [mask for mask in (causal, keys) if mask is not None]
        return layer.forward(*arrays, np.logical_and(*both) if len(both) == 2 else both[0] if both else None)
    if isinstance(module, nn.Transformer):
        return layer.forward(*arrays, keys, causal, keys)
    return layer.forward(*arrays, causal, keys)


def assert_same(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-12, atol=1e-12)


def gradients_as_a_layer(module):
    """Return the layer whose values are the gradients of the module's parameters."""
    moved = copy.deepcopy(module)
    for parameter, original in zip(moved.parameters(), module.parameters(), strict=True):
        parameter.data = original.grad
    return from_torch(moved)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_gradients_and_the_round_trip(kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    module = random_module(kind, rng)
    arrays, causal, tokens = random_inputs(module, rng)
    tensors = [torch.from_numpy(array).requires_grad_() for array in arrays]
    theirs = run_torch(module, tensors, causal, tokens)
    layer = from_torch(module)
    ours, cache = run_ours(layer, module, arrays, causal, tokens)
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

    back = to_torch(layer, batch_first=attentions_of(module)[0].batch_first)
    assert_equal_modules(back, module)
    for mode in (back.eval(), module), (back.train(), module.train()):  # with dropout the second time
        outputs = [with_seed(run_torch, m, tensors, causal, tokens) for m in mode]
        assert torch.equal(*outputs)


def with_seed(function, *arguments):
    torch.manual_seed(7)
    return function(*arguments)


def assert_equal_modules(one, other):
    """Check that two modules have the same weights, bit for bit, under the same names."""
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, tensor in one.state_dict().items():
        assert tensor.dtype == other.state_dict()[name].dtype
        assert torch.equal(tensor, other.state_dict()[name]), name
        assert one.state_dict()[name].is_contiguous()


def test_each_dropout_keeps_its_place():
    module = nn.TransformerDecoderLayer(4, 2, 6, batch_first=True)
    places = [module.self_attn, module.multihead_attn]
    for place, p in zip(places, (0.1, 0.2), strict=True):
        place.dropout = p
    for number, p in enumerate((0.3, 0.4, 0.5, 0.6)):
        getattr(module, f"dropout{number or ''}").p = p
    layer = from_torch(module)
    assert (layer.self_attention.dropout, layer.cross.dropout, layer.feed_forward.dropout) == (0.1, 0.2, 0.3)
    residuals = layer.self_residual, layer.cross_residual, layer.feed_forward_residual
    assert [residual.norm.dropout for residual in residuals] == [0.4, 0.5, 0.6]
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


def test_the_random_generator_of_pytorch_is_not_used():
    module = nn.Transformer(4, 2, 1, 1, 6)
    state = torch.get_rng_state()
    to_torch(from_torch(module))
    assert torch.equal(torch.get_rng_state(), state)


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


def test_the_gradient_check_accepts_a_converted_transformer():
    layer = from_torch(nn.Transformer(4, 2, 1, 1, 6, bias=False), dtype="float64")
    rng = np.random.default_rng(0)
    source, target = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 2, 4))
    assert npformer.gradcheck(layer, source, target, context=Context(train=True, rng=7)).ok


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True),
            "the module has add_bias_kv=True, a key that",
        ),
        (lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True), "the module has add_zero_attn=True, a key"),
        (
            lambda: OwnLayer(4, 2),
            "the module is of class OwnLayer, a subclass of TransformerEncoderLayer, and from_",
        ),
        (
            lambda: nn.TransformerEncoder(OwnLayer(4, 2), 1),
            "the part layers.0 is of class OwnLayer, a subclass of",
        ),
        (
            lambda: nn.GRU(4, 4),
            "the module is of class GRU, and from_torch knows only what nn.MultiheadAttention, nn",
        ),
        (
            lambda: encoder(norm2=nn.BatchNorm1d(4)),
            "the part layers.0.norm2 is of class BatchNorm1d, and from_torch",
        ),
        (
            lambda: encoder(norm1=nn.LayerNorm(4, elementwise_affine=False)),
            "layers.0.norm1 is a LayerNorm over",
        ),
        (lambda: nn.LayerNorm((2, 4)), "the module is a LayerNorm over 2 axes with elementwise_affine=True"),
        (
            lambda: encoder(dropout1=nn.Identity()),
            "the part layers.0.dropout1 is of class Identity, and from_torch",
        ),
        (lambda: encoder(activation=torch.sin), "the part layers.0 has an activation that npformer does not"),
        (lambda: encoder(activation=partial(torch.sin)), "the part layers.0 has an activation that npformer"),
        (
            lambda: nn.Transformer(4, 2, custom_encoder=nn.Linear(4, 4)),
            "the part encoder is of class Linear, and from",
        ),
        (hooked, "the module has hooks or a forward of its own, which may change its output: remove them"),
        (lambda: encoder(forward=print), "the part layers.0 has hooks or a forward of its own"),
        (with_two_orders, "the parts of this TransformerEncoder differ in batch_first"),
        (
            lambda: nn.Linear(2, 2, device="meta"),
            "the module has a weight on the device meta, without values",
        ),
        (lambda: nn.Linear(2, 2, dtype=torch.complex64), "the module has a weight of dtype torch.complex64"),
        (lambda: np.ones(3), "from_torch takes a PyTorch module and got a ndarray: give an nn.Module"),
    ],
)
def test_errors_of_from_torch(make, message):
    with pytest.raises(UserError, match=message) as raised:
        from_torch(make())
    assert str(raised.value).count(". ") == 0  # one sentence


def stack(**changes):
    return Encoder(tiny_config(**changes))


def with_rms_norm():
    model = stack(norm="pre", final_norm=True)
    model[1].self_residual.norm = RMSNorm(model.norm.gain.shape[0])
    return model


def with_two_norms():
    model, other = stack(norm="pre", final_norm=True), stack(norm="post")
    model[0].feed_forward_residual = other[0].feed_forward_residual
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MultiHeadAttention(4, 2, n_kv_heads=1),
            "the layer shares keys and values among heads, which",
        ),
        (
            lambda: MultiHeadAttention(4, 2, d_head=3),
            "the layer has heads of a width other than d_model / n_h",
        ),
        (lambda: MultiHeadAttention(4, 2, d_value=3), "the layer has values of another width than its keys"),
        (
            lambda: MultiHeadAttention(4, 2, output=False),
            "the layer has no output matrix, which nn.Multihead",
        ),
        (
            lambda: MultiHeadAttention(4, 2, rotary=RotaryPositions(2, 4)),
            "the layer rotates queries and keys",
        ),
        (lambda: MultiHeadAttention(4, 2, scale=False), "the layer does not divide its scores by sqrt"),
        (lambda: stack(mask_fill=-1e9), "the part layers.0.self_attention replaces masked scores by finite"),
        (lambda: MultiHeadAttention(4, 2, activation="relu"), "the layer applies an activation to queries"),
        (
            lambda: RelativeAttention(4, 2),
            "the layer is of class RelativeAttention: to_torch converts MultiHeadAtten",
        ),
        (
            lambda: Transformer(tiny_config()),
            "the layer is of class Transformer: to_torch converts MultiHeadAttention",
        ),
        (lambda: Projection(4, [4], [2]), "the layer is of class Projection: to_torch converts"),
        (
            lambda: stack(norm="n-dna", final_norm=True),
            "the part layers.0.self_residual computes another seq",
        ),
        (
            lambda: stack(activation="none"),
            "the part layers.0.feed_forward has the activation 'none': to_torch",
        ),
        (lambda: Encoder.from_layers([]), "the layer has no layers, and PyTorch cannot run such a stack"),
        (lambda: stack(n_heads=3, d_head=4), "the part layers.0.self_attention has heads of a width other"),
        (
            with_rms_norm,
            "the part layers.1.self_residual.norm is of class RMSNorm: to_torch converts LayerNorm",
        ),
        (with_two_norms, "the part layers.0 has norms before and after its sublayers"),
        (
            lambda: np.ones(3),
            "the layer is of class ndarray: to_torch converts MultiHeadAttention, EncoderLayer",
        ),
    ],
)
def test_errors_of_to_torch(make, message):
    with pytest.raises(UserError, match=message) as raised:
        to_torch(make())
    assert str(raised.value).count(". ") == 0  # one sentence


def test_output_and_input_biases_are_independent():
    layer = MultiHeadAttention(4, 2, bias=False, output_bias=True, dtype=np.float64)
    layer.output.bias.value[:] = [1, 2, 3, 4]
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    tensor = torch.from_numpy(x)
    module = to_torch(layer)
    y, _ = module(tensor, tensor, tensor)
    assert_same(layer(x), y)
    assert_same(from_torch(module)(x), y)
    assert isinstance(from_torch(module).output, Linear)


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
