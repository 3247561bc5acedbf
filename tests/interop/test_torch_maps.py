"""attention_maps: the weights are those computed by hand, and the module is as it was."""

import itertools
import math
import os

import numpy as np
import pytest

from npformer.errors import UserError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 - only where PyTorch is installed
from torch.nn.attention.flex_attention import flex_attention  # noqa: E402  it imports torch

from npformer.interop.torch import attention_maps  # noqa: E402  it stands below that line

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:enable_nested_tensor"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:flex_attention called without"),
]

D, H, T = 8, 2, 5
TOKENS = {  # True at tokens, for three sentences of length T
    "no padding": None,
    "padding at the end": np.arange(T) < np.array([[3], [5], [1]]),
    "only padding in the last column": np.arange(T) < np.array([[3], [4], [1]]),
    "padding at the start": np.arange(T) >= np.array([[2], [0], [4]]),
}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def make_encoder(n_layers=2, **settings):
    settings = {"batch_first": True, "dropout": 0.3} | settings
    layer = nn.TransformerEncoderLayer(D, H, 12, **settings)
    module = nn.TransformerEncoder(layer, n_layers, nn.LayerNorm(D)).eval()
    for parameter in module.parameters():  # all layers are copies, with biases of 0
        nn.init.normal_(parameter, std=0.5)
    return module


def weights_by_hand(attention, query, key, blocked):
    """Return the weights (B, H, T, S) from arrays (B, T, D) and (B, S, D), one row after another."""
    wq, wk, _ = attention.in_proj_weight.detach().numpy().astype(float).reshape(3, D, D)
    bq, bk, _ = attention.in_proj_bias.detach().numpy().astype(float).reshape(3, D)
    q, k = query @ wq.T + bq, key @ wk.T + bk
    weights = np.zeros((len(q), H, q.shape[1], k.shape[1]))
    for b, h, t in np.ndindex(weights.shape[:3]):
        part = slice(h * D // H, (h + 1) * D // H)
        scores = k[b, :, part] @ q[b, t, part] / math.sqrt(D // H)
        powers = np.where(np.broadcast_to(blocked, weights.shape)[b, h, t], 0, np.exp(scores - scores.max()))
        weights[b, h, t] = powers / max(powers.sum(), 1e-300)
    return weights


def encoder_maps_by_hand(module, x, tokens):
    """Return the weights of all layers, whose inputs the layers compute without any fast path."""
    padding = None if tokens is None else torch.from_numpy(~tokens)
    blocked = False if tokens is None else ~tokens[:, None, None, :]
    maps = {}
    for i, layer in enumerate(module.layers):
        inside = layer.norm1(x) if layer.norm_first else x
        array = inside.detach().numpy().astype(float)
        maps[f"layers.{i}.self_attn"] = weights_by_hand(layer.self_attn, array, array, blocked)
        x = layer(x, src_key_padding_mask=padding)  # with gradients, so that PyTorch takes its slow path
    return maps


def assert_same_maps(found, expected):
    assert list(found) == list(expected)
    for name, weights in found.items():
        assert isinstance(weights, np.ndarray)
        np.testing.assert_allclose(weights, expected[name], rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("settings", [{}, {"norm_first": True}, {"activation": "gelu"}], ids=str)
@pytest.mark.parametrize("tokens", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("grad", [True, False])
def test_an_encoder_in_eval_mode(settings, tokens, grad):
    """With padding and without gradients, PyTorch would remove the padding and compute no weights."""
    module, x = make_encoder(**settings), torch.randn(3, T, D)
    padding = None if tokens is None else torch.from_numpy(~tokens)
    with torch.set_grad_enabled(grad):
        before = module(x, src_key_padding_mask=padding)
        maps = attention_maps(module, x, src_key_padding_mask=padding)
        assert torch.equal(module(x, src_key_padding_mask=padding), before)
    assert_same_maps(maps, encoder_maps_by_hand(module, x, tokens))


def test_nested_tensors():
    """Padding has the weight 0, as key and as query."""
    module, lengths = make_encoder(), [3, 5, 1]
    sentences = [torch.randn(n, D) for n in lengths]
    nested = torch.nested.nested_tensor(sentences)
    with torch.no_grad():
        before = module(nested)
        maps = attention_maps(module, nested)
        assert all(torch.equal(*pair) for pair in zip(module(nested).unbind(), before.unbind(), strict=True))
    x = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    tokens = np.arange(T) < np.array(lengths)[:, None]
    expected = encoder_maps_by_hand(module, x, tokens)
    assert_same_maps(maps, {name: w * tokens[:, None, :, None] for name, w in expected.items()})
    # gradients are off during the run, so nested tensors are possible with gradients on
    assert_same_maps(attention_maps(module, nested), maps)


def test_a_transformer_has_all_its_maps_in_the_order_of_the_computation():
    module = nn.Transformer(D, H, 1, 2, 12, batch_first=False).eval()
    source, target = torch.randn(4, 3, D), torch.randn(T, 3, D)
    causal = nn.Transformer.generate_square_subsequent_mask(T)
    maps = attention_maps(module, source, target, tgt_mask=causal)
    decoder = [f"decoder.layers.{i}.{kind}" for i in range(2) for kind in ("self_attn", "multihead_attn")]
    assert list(maps) == ["encoder.layers.0.self_attn", *decoder]
    shapes = [(3, H, T, T), (3, H, T, 4)]
    assert [w.shape for w in maps.values()] == [(3, H, 4, 4), *shapes, *shapes]
    x = target.transpose(0, 1).numpy().astype(float)
    by_hand = weights_by_hand(module.decoder.layers[0].self_attn, x, x, np.triu(np.ones((T, T), bool), 1))
    np.testing.assert_allclose(maps[decoder[0]], by_hand, rtol=0, atol=1e-6)


def mask_of(kind, shape):
    """Return a bool mask, True at blocked keys but not at the first one; or a float mask; or None."""
    if kind is None:
        return None
    blocked = torch.rand(shape) < 0.4
    blocked[..., 0] = False
    return blocked if kind is bool else torch.randn(shape).masked_fill(blocked, -math.inf)


OPTIONS = [{"batch_first": True}, {}, {"bias": False}, {"kdim": 3, "vdim": 4}, {"add_bias_kv": True}]
OPTIONS += [{"add_zero_attn": True}, {"add_bias_kv": True, "add_zero_attn": True, "kdim": 3}]
MASKS = [(None, bool), (None, float), (None, None), (bool, None), (bool, bool), (float, None), (float, float)]
# in a sample of every fifth, all options and all masks occur
EVERY = 1 if os.environ.get("NPFORMER_NIGHTLY") else 5


@pytest.mark.parametrize(
    ("masks", "of_heads", "options"), [*itertools.product(MASKS, (True, False), OPTIONS)][::EVERY], ids=str
)
def test_masks_and_options_as_in_the_weights_that_pytorch_returns(masks, of_heads, options):
    attn, padding = masks
    module = nn.MultiheadAttention(D, H, dropout=0.5, **options).eval()
    query, key, value = torch.randn(3, T, D), torch.randn(3, 4, module.kdim), torch.randn(3, 4, module.vdim)
    if not module.batch_first:
        query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
    masks = {
        "attn_mask": mask_of(attn, (3 * H, T, 4) if of_heads else (T, 4)),
        "key_padding_mask": mask_of(padding, (3, 4)),
    }
    _, expected = module(query, key, value, **masks, average_attn_weights=False)
    found = attention_maps(module, query, key, value, need_weights=False, **masks)
    assert_same_maps(found, {"": expected.detach().numpy()})


@pytest.mark.parametrize("attn", [None, (T, 4), (H, T, 4)])
@pytest.mark.parametrize("padding", [None, (4,)])
def test_a_single_sentence_without_a_batch(attn, padding):
    module = nn.MultiheadAttention(D, H)
    query, key = torch.randn(T, D), torch.randn(4, D)
    masks = {"attn_mask": attn, "key_padding_mask": padding}
    masks = {name: shape and mask_of(bool, shape) for name, shape in masks.items()}
    _, expected = module(query, key, key, **masks, average_attn_weights=False)
    assert_same_maps(attention_maps(module, query, key, key, **masks), {"": expected.detach()[None].numpy()})


def test_a_mask_that_is_not_contiguous_and_the_hint_of_a_causal_mask():
    module, x = nn.MultiheadAttention(D, H, batch_first=True), torch.randn(3, T, D)
    causal = torch.ones(T, T, dtype=torch.bool).tril(-1).expand(3 * H, T, T).transpose(1, 2)
    found = attention_maps(module, x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
    by_hand = weights_by_hand(module, *[x.numpy().astype(float)] * 2, np.triu(np.ones((T, T), bool), 1))
    assert_same_maps(found, {"": by_hand})


def test_a_query_that_may_attend_to_no_key_has_weights_0():
    module, x = nn.MultiheadAttention(D, H, batch_first=True), torch.randn(1, 2, D)
    weights = attention_maps(module, x, x, x, attn_mask=torch.tensor([[True, True], [False, False]]))[""]
    assert not weights[:, :, 0].any()
    np.testing.assert_allclose(weights[:, :, 1].sum(-1), 1, rtol=1e-6)


def test_the_weights_are_those_before_dropout():
    module, x = nn.MultiheadAttention(D, H, dropout=0.9, batch_first=True).train(), torch.randn(2, T, D)
    by_hand = weights_by_hand(module, *[x.numpy().astype(float)] * 2, False)
    assert_same_maps(attention_maps(module, x, x, x), {"": by_hand})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    """Maps of half precision are computed in float32, from inputs and weights in half precision."""
    module, x = make_encoder(1).to(dtype), torch.randn(2, T, D, dtype=dtype)
    found = attention_maps(module, x)
    assert found["layers.0.self_attn"].dtype == (np.float64 if dtype is torch.float64 else np.float32)
    assert_same_maps(found, encoder_maps_by_hand(module.double(), x.double(), None))


class Own(nn.Module):
    """A module of a user: batch norm, dropout, one attention called twice, and one that is not called."""

    def __init__(self):
        super().__init__()
        self.norm, self.dropout = nn.BatchNorm1d(T), nn.Dropout(0.5)
        self.attention = self.same = nn.MultiheadAttention(D, H, batch_first=True)
        self.unused = nn.MultiheadAttention(D, H)
        self.encoder = make_encoder(1, norm_first=False)

    def forward(self, x, *, fails=False):
        x = self.dropout(self.norm(x))
        x, _ = self.attention(x, x, x, need_weights=False)
        x, _ = self.same(query=x, key=x, value=x)
        if fails:
            raise ValueError("the user's own error")
        return self.encoder(x)


def test_the_second_call_of_a_module_and_one_that_is_not_called():
    module, x = Own().eval(), torch.randn(2, T, D)
    maps = attention_maps(module, x)
    assert list(maps) == ["attention", "attention#2", "encoder.layers.0.self_attn"]
    x = module.norm(x)
    y, first = module.attention(x, x, x, average_attn_weights=False)
    _, second = module.attention(y, y, y, average_attn_weights=False)
    np.testing.assert_allclose(maps["attention"], first.detach(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(maps["attention#2"], second.detach(), rtol=0, atol=1e-6)


def state_of(module):
    """Return all that attention_maps might change, with the identity of the tensors."""
    fast = torch.backends.mha.get_fastpath_enabled()
    state = [torch.get_rng_state().tolist(), torch.is_grad_enabled(), fast]
    for name, part in module.named_modules():
        own = {key: value for key, value in vars(part).items() if not key.startswith("_")}
        hooks = {key: list(value.items()) for key, value in vars(part).items() if "hooks" in key and value}
        state.append((name, str(own), hooks))
    for name, t in (*module.named_parameters(), *module.named_buffers()):
        state.append((name, id(t), t.requires_grad, t.grad, t._version, t.tolist()))
    return str(state)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_module_is_as_it_was(train, fails):
    """Also if it fails, and if its forward pass changes buffers and draws random numbers."""
    module, x = Own().train(train), torch.randn(2, T, D)
    module(x).sum().backward()
    module.norm.weight.requires_grad_(False)
    seen = []
    module.attention.register_forward_hook(lambda *_: seen.append(1))
    before = state_of(module)
    if fails:
        with pytest.raises(ValueError, match="the user's own error"):
            attention_maps(module, x, fails=True)
    else:
        attention_maps(module, x)
    assert state_of(module) == before
    assert len(seen) == 2  # the user's own hook was called


def test_a_compiled_module():
    module, x = make_encoder(1), torch.randn(2, T, D)
    compiled = torch.compile(module, backend="eager")
    with torch.no_grad():
        compiled(x)
        found = attention_maps(compiled, x)
    expected = encoder_maps_by_hand(module, x, None)
    assert_same_maps(found, expected)
    whole = nn.Sequential(module, torch.compile(module.layers[0], backend="eager"))
    names = ["0.layers.0.self_attn", "0.layers.0.self_attn#2"]
    assert list(attention_maps(nn.DataParallel(whole), x)) == names


class Direct(nn.Module):
    """A module that calls scaled_dot_product_attention with its settings."""

    def forward(self, query, key, **settings):
        return nn.functional.scaled_dot_product_attention(query, key, key, **settings)


CALLS = {
    "causal": ((3, H, T, D), (3, H, T, D), {"is_causal": True}),
    "a scale": ((3, H, T, D), (3, H, 4, D), {"scale": 0.3}),
    "grouped queries": ((3, 2 * H, T, D), (3, H, 4, D), {"enable_gqa": True, "attn_mask": bool}),
    "no heads": ((3, T, D), (3, 4, D), {"attn_mask": float}),
    "no batch": ((T, D), (4, D), {"attn_mask": bool}),
    "windows": ((2, 3, H, T, D), (2, 3, H, 4, D), {}),
}


@pytest.mark.parametrize(("query", "key", "settings"), CALLS.values(), ids=CALLS)
def test_the_weights_of_a_function_are_its_output_for_the_values_one(query, key, settings):
    """With the unit vectors as values, the output of a query are its weights."""
    query, key, settings = torch.randn(query), torch.randn(key), dict(settings)
    if mask := settings.get("attn_mask"):
        blocked = mask_of(mask, (T, 4))
        settings["attn_mask"] = ~blocked if mask is bool else blocked
    values = torch.eye(key.shape[-2]).expand(*key.shape[:-1], key.shape[-2])
    expected = nn.functional.scaled_dot_product_attention(query, key, values, **settings).numpy()
    found = attention_maps(Direct(), query, key, **settings)
    np.testing.assert_allclose(found[""].reshape(expected.shape), expected, rtol=0, atol=1e-6)
    assert found[""].ndim == 4


class Both(nn.Module):
    """A module with both kinds of attention, and one that calls the function of nn.MultiheadAttention."""

    def __init__(self):
        super().__init__()
        self.direct, self.attention = Direct(), nn.MultiheadAttention(D, H, batch_first=True)
        self.pool = Pool()

    def forward(self, x):
        x = self.direct(x, x, is_causal=True)
        x, _ = self.attention(x, x, x, need_weights=False)
        return self.direct(self.pool(x.transpose(0, 1)), x)


class Pool(nn.MultiheadAttention):
    """An attention module with a forward of its own."""

    def forward(self, x):
        weights = (self.in_proj_weight, self.in_proj_bias, None, None, False, 0.5)
        out = self.out_proj.weight, self.out_proj.bias
        return nn.functional.multi_head_attention_forward(
            x, x, x, D, H, *weights, *out, need_weights=False, training=True
        )[0].transpose(0, 1)

    def __init__(self):
        super().__init__(D, H)


def test_no_attention_of_a_module_is_left_out():
    module, x = Both(), torch.randn(2, T, D)
    maps = attention_maps(module, x)
    assert list(maps) == ["direct", "attention", "pool", "direct#2"]
    assert [each.shape for each in maps.values()] == [(2, 1, T, T), (2, H, T, T), (2, H, T, T), (2, 1, T, T)]
    for weights in maps.values():
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    plain = nn.MultiheadAttention(D, H)
    plain.load_state_dict(module.pool.state_dict())
    y = module.attention(*[module.direct(x, x, is_causal=True)] * 3)[0].transpose(0, 1)
    expected = plain(y, y, y, average_attn_weights=False)[1].detach().numpy()
    np.testing.assert_allclose(maps["pool"], expected, rtol=0, atol=1e-6)


class ByHand(nn.Module):
    """A module that computes its attention by itself."""

    def __init__(self, product):
        super().__init__()
        self.product, self.values = product, nn.Parameter(torch.randn(T, D))

    def forward(self, x):
        return self.product(self, x @ x.mT, x)


def _dropped(_, scores, x):
    weights = nn.functional.softmax(scores.double(), dim=-1)
    nn.functional.dropout(weights, 0.5, training=True, inplace=True)
    return weights.type_as(x) @ x + weights.type_as(x) @ (2 * x)  # one attention, for two kinds of values


def _turned(_, scores, x):  # as SAGAN, whose channels come first
    return torch.bmm(x.mT, torch.softmax(scores, -1).permute(0, 2, 1))


def _with_sink(_, scores, x):
    scores = torch.cat([scores, torch.full_like(scores[..., :1], -99.0)], -1)
    return scores.softmax(-1)[..., :-1] @ x


def _joined(_, scores, x):  # batch and heads in one axis
    weights = torch.stack([scores, scores], 1).softmax(-1)
    return torch.bmm(weights.view(-1, T, T), x.repeat_interleave(2, 0)).view(-1, 2, T, D)


BY_HAND = {
    "matmul": lambda _, scores, x: torch.matmul(nn.Softmax(-1)(scores), x),
    "einsum": lambda _, scores, x: torch.einsum("bts, bsd -> btd", scores.softmax(2), x),
    "a mask behind": lambda _, scores, x: scores.softmax(-1).masked_fill(torch.zeros(T, T).bool(), 0) @ x,
    "the other axis": lambda _, scores, x: x.mT @ scores.softmax(-2),
    "dropout": _dropped,
    "turned": _turned,
    "a sink": _with_sink,
    "batch and heads": _joined,
}


@pytest.mark.parametrize("product", BY_HAND.values(), ids=BY_HAND)
def test_attention_that_a_module_computes_by_itself(product):
    x = torch.randn(2, T, D)
    (found,) = attention_maps(ByHand(product), x).values()
    assert found.shape == (2, 2 if product is _joined else 1, T, T)
    np.testing.assert_allclose(found[:, 0], (x @ x.mT).softmax(-1), rtol=0, atol=1e-6)


NO_ATTENTION = {
    "a table": lambda self, scores, x: scores.softmax(-1) @ self.values,
    "queries summed": lambda _, scores, x: torch.einsum("bts,btd->bsd", scores.softmax(-1), x),
    "queries summed by matmul": lambda _, scores, x: x.mT @ scores.softmax(-1),
    "over the batch": lambda _, scores, x: scores.softmax(0) @ x,
    "no product": lambda _, scores, x: scores.softmax(-1) * 2,
}


@pytest.mark.parametrize("product", NO_ATTENTION.values(), ids=NO_ATTENTION)
def test_a_softmax_that_weighs_no_values(product):
    with pytest.raises(UserError, match="multiplied no values by a softmax"):
        attention_maps(ByHand(product), torch.randn(2, T, D))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("family", ["GPT2", "Llama", "Bert"])
def test_models_of_transformers(family, implementation):
    """They are the weights that models with attn_implementation="eager" return."""
    transformers = pytest.importorskip("transformers")
    sizes = {"GPT2": {"n_embd": 8, "n_head": 2, "n_layer": 2, "n_inner": 9}}.get(
        family,
        {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 9},
    )
    settings = {"num_key_value_heads": 1} if family == "Llama" else {}
    config = getattr(transformers, f"{family}Config")(vocab_size=11, **sizes, **settings)
    model = getattr(transformers, f"{family}Model")(config).eval()
    inputs = {"input_ids": torch.randint(11, (2, T)), "attention_mask": torch.ones(2, T).tril(3)}
    model.set_attn_implementation(implementation)
    maps = attention_maps(model, **inputs)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(**inputs, output_attentions=True).attentions
    rows = inputs["attention_mask"].bool().numpy()  # padding attends to other keys in either setting
    assert len(maps) == 2
    for (name, weights), each in zip(maps.items(), expected, strict=True):
        assert ".attn" in name or "attention" in name or "self_attn" in name
        np.testing.assert_allclose(
            weights.swapaxes(1, 2)[rows], each.numpy().swapaxes(1, 2)[rows], rtol=0, atol=1e-6
        )


class OwnAttention(nn.MultiheadAttention):
    """An attention module that computes no attention of PyTorch."""

    def forward(self, x):
        return x


class Idle(nn.Linear):
    """A module that does not call its attention module."""

    def __init__(self):
        super().__init__(D, D)
        self.attention = nn.MultiheadAttention(D, H)


class Flex(nn.Module):
    """A module that computes its attention by flex_attention."""

    def forward(self, x):
        return flex_attention(*[x[None, None]] * 3)


class Numbered(nn.Module):
    """A module whose attention 1 has a forward of its own, beside an attention 10."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"1": OwnAttention(D, H), "10": nn.MultiheadAttention(D, H)})

    def forward(self, x):
        return self.layers["1"](x) + self.layers["10"](x, x, x)[0]


REFUSED = {
    "this Linear called no attention of PyTorch, and multiplied no values by a softmax": nn.Linear(D, D),
    "the part '0' is TorchScript, whose calls": nn.Sequential(torch.jit.ScriptModule()),
    "this Flex computes its attention by flex_attention, beside which": Flex(),
    "the attention module '0' is a OwnAttention with a forward of its own": nn.Sequential(OwnAttention(D, H)),
    "the attention module 'layers.1' is a OwnAttention": Numbered(),
    "attention_maps takes a PyTorch module and got a function: give an nn.Module": np.ones,
    "this Idle called no attention of PyTorch": Idle(),
}


@pytest.mark.parametrize(("message", "module"), REFUSED.items())
def test_modules_without_weights_to_compute(message, module):
    with pytest.raises(UserError, match=message):
        attention_maps(module, torch.randn(2, D))
