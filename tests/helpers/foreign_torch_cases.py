"""Functions of PyTorch with a hand-written backward pass, right and wrong."""

import math

import torch
from foreign_case import ForeignCase
from torch.autograd import Function

CASES = []


def normal(*shapes, dtype=torch.float64):
    """Return a function that draws normally distributed tensors, always the same ones."""

    def draw():
        generator = torch.Generator().manual_seed(3)
        return tuple(
            torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype) for shape in shapes
        )

    return draw


def function(forward, backward):
    """Return the autograd.Function with this forward and this backward pass."""
    return type(
        "Example", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def right(name, thing, inputs, **more):
    """Add a case whose gradients are correct."""
    CASES.append(ForeignCase(name, thing, inputs, **more))


def wrong(name, thing, inputs, row, words, **more):
    """Add a case with one mistake, the row of the report that finds it, and words of the diagnosis."""
    CASES.append(ForeignCase(name, thing, inputs, row, words, **more))


# ---------------------------------------------------------------------------------------------------------
# Causal attention


def causal_weights(q, k):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    blocked = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(blocked, -math.inf).softmax(-1)


def attention(q, k, v):
    return causal_weights(q, k) @ v


def attention_forward(ctx, q, k, v):
    ctx.save_for_backward(q, k, v)
    return attention(q, k, v)


def attention_backward(ctx, dy):
    q, k, v = ctx.saved_tensors
    p = causal_weights(q, k)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


def without_mask(ctx, dy):
    q, k, v = ctx.saved_tensors
    p = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


def without_scale(ctx, dy):
    q, k, v = ctx.saved_tensors
    p = causal_weights(q, k)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True))
    return ds @ k, ds.mT @ q, p.mT @ dy


def sum_over_queries(ctx, dy):
    q, k, v = ctx.saved_tensors
    p = causal_weights(q, k)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-2, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


def without_softmax_term(ctx, dy):
    q, k, v = ctx.saved_tensors
    p = causal_weights(q, k)
    ds = p * (dy @ v.mT) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


def exchanged(ctx, dy):
    dq, dk, dv = attention_backward(ctx, dy)
    return dk, dq, dv


def values_not_transposed(ctx, dy):
    q, k, _ = ctx.saved_tensors
    dq, dk, _ = attention_backward(ctx, dy)
    return dq, dk, causal_weights(q, k) @ dy


def float32_weights(ctx, dy):
    q, k, v = ctx.saved_tensors
    p = causal_weights(q.float(), k.float()).double()
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


QKV = normal((2, 5, 3), (2, 5, 3), (2, 5, 3))
right("attention", function(attention_forward, attention_backward), QKV)
wrong("attention: mask", function(attention_forward, without_mask), QKV, "q", "")
wrong("attention: scale", function(attention_forward, without_scale), QKV, "q", "√3")
wrong("attention: axis", function(attention_forward, sum_over_queries), QKV, "q", "all gradients are correct")
wrong("attention: softmax", function(attention_forward, without_softmax_term), QKV, "q", "")
wrong("attention: exchanged", function(attention_forward, exchanged), QKV, "q", "the gradient of k")
wrong(
    "attention: transpose", function(attention_forward, values_not_transposed), QKV, "v", "is not transposed"
)
wrong("attention: float32", function(attention_forward, float32_weights), QKV, "q", "float32")

KERNEL = {"reference": attention, "inputs": normal((2, 8, 4), (2, 8, 4), (2, 8, 4), dtype=torch.bfloat16)}
HALF = {"reference": attention, "inputs": normal((2, 8, 4), (2, 8, 4), (2, 8, 4), dtype=torch.float16)}
SINGLE = {"reference": attention, "inputs": normal((2, 8, 4), (2, 8, 4), (2, 8, 4), dtype=torch.float32)}
right("attention in bfloat16", function(attention_forward, attention_backward), **KERNEL)
right("attention in float16", function(attention_forward, attention_backward), **HALF)
right("attention in float32", function(attention_forward, attention_backward), **SINGLE)
wrong("attention in bfloat16: mask", function(attention_forward, without_mask), row="q", words="", **KERNEL)
wrong("attention in float16: scale", function(attention_forward, without_scale), row="q", words="= 2", **HALF)
wrong(
    "attention in float32: axis", function(attention_forward, sum_over_queries), row="q", words="", **SINGLE
)

# ---------------------------------------------------------------------------------------------------------
# A linear layer


def linear_forward(ctx, x, w, b):
    ctx.save_for_backward(x, w)
    return x @ w + b


def linear_backward(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, x.T @ dy, dy.sum(0)


def bias_mean(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, x.T @ dy, dy.mean(0)


def bias_axis(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, x.T @ dy, dy.sum(1)


def bias_none(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, x.T @ dy, None


def weight_transposed(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, dy.T @ x, dy.sum(0)


def weight_not_transposed(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w, x.T @ dy, dy.sum(0)


def weight_in_float32(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, (x.float().T @ dy.float()).double(), dy.sum(0)


def two_of_three(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, x.T @ dy


def other_input_asked(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T if ctx.needs_input_grad[1] else None, x.T @ dy, dy.sum(0)


def counted_twice(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T, x.T @ dy * 2, dy.sum(0)


XWB = normal((4, 4), (4, 4), (4,))
right("linear", function(linear_forward, linear_backward), XWB)
wrong("linear: mean", function(linear_forward, bias_mean), XWB, "b", "averaged instead of summed")
wrong(
    "linear: axis",
    function(linear_forward, bias_axis),
    XWB,
    "b",
    "the sum runs over the wrong axes",
)
wrong("linear: None", function(linear_forward, bias_none), XWB, "b", "backward returns None")
wrong("linear: transposed", function(linear_forward, weight_transposed), XWB, "w", "transposed")
wrong("linear: transpose", function(linear_forward, weight_not_transposed), XWB, "x", "transposed")
wrong("linear: float32", function(linear_forward, weight_in_float32), XWB, "w", "float32")
wrong("linear: count", function(linear_forward, two_of_three), XWB, "backward", "returned 2 gradients")
wrong(
    "linear: shape",
    function(linear_forward, weight_transposed),
    normal((5, 4), (4, 3), (3,)),
    "w",
    "shape [3, 4]",
)
wrong("linear: needs", function(linear_forward, other_input_asked), XWB, "each input alone", "of x")
wrong("linear: twice", function(linear_forward, counted_twice), XWB, "w", "counted twice")

# ---------------------------------------------------------------------------------------------------------
# Layer normalization, softmax


def norm_forward(ctx, x, gain):
    rstd = (x.var(-1, keepdim=True, unbiased=False) + 1e-5).rsqrt()
    normalized = (x - x.mean(-1, keepdim=True)) * rstd
    ctx.save_for_backward(normalized, rstd, gain)
    return normalized * gain


def norm_backward(ctx, dy):
    n, rstd, gain = ctx.saved_tensors
    d = dy * gain
    dx = rstd * (d - d.mean(-1, keepdim=True) - n * (d * n).mean(-1, keepdim=True))
    return dx, (dy * n).sum(0)


def without_mean(ctx, dy):
    n, rstd, gain = ctx.saved_tensors
    d = dy * gain
    return rstd * (d - n * (d * n).mean(-1, keepdim=True)), (dy * n).sum(0)


def without_variance(ctx, dy):
    n, rstd, gain = ctx.saved_tensors
    d = dy * gain
    return rstd * (d - d.mean(-1, keepdim=True)), (dy * n).sum(0)


def without_gain(ctx, dy):
    n, rstd, _ = ctx.saved_tensors
    dx = rstd * (dy - dy.mean(-1, keepdim=True) - n * (dy * n).mean(-1, keepdim=True))
    return dx, (dy * n).sum(0)


def saved_in_place(ctx, dy):
    n, rstd, gain = ctx.saved_tensors
    d = dy * gain
    dgain = (dy * n).sum(0)
    dx = rstd * (d - d.mean(-1, keepdim=True) - n.mul_((d * n).mean(-1, keepdim=True)))
    return dx, dgain


def softmax_forward(ctx, x):
    y = x.softmax(-1)
    ctx.save_for_backward(y)
    return y


def softmax_backward(ctx, dy):
    (y,) = ctx.saved_tensors
    return y * (dy - (dy * y).sum(-1, keepdim=True))


def diagonal(ctx, dy):
    (y,) = ctx.saved_tensors
    return y * (1 - y) * dy


def dy_in_place(ctx, dy):
    (y,) = ctx.saved_tensors
    return dy.mul_(y) - y * dy.sum(-1, keepdim=True)


NORM = normal((3, 6), (6,))
right("layer norm", function(norm_forward, norm_backward), NORM)
wrong("layer norm: mean", function(norm_forward, without_mean), NORM, "x", "")
wrong("layer norm: variance", function(norm_forward, without_variance), NORM, "x", "")
wrong("layer norm: gain", function(norm_forward, without_gain), NORM, "x", "")
wrong("layer norm: in place", function(norm_forward, saved_in_place), NORM, "backward", "modified in place")
right("softmax", function(softmax_forward, softmax_backward), normal((3, 5)))
wrong("softmax: diagonal", function(softmax_forward, diagonal), normal((3, 5)), "x", "")
wrong("softmax: dy", function(softmax_forward, dy_in_place), normal((3, 5)), "inputs not modified", "into dy")

# ---------------------------------------------------------------------------------------------------------
# Integers, random numbers, several outputs, state


def embedding_forward(ctx, ids, table):
    ctx.save_for_backward(ids)
    ctx.rows = table.shape[0]
    return table[ids]


def embedding_backward(ctx, dy):
    (ids,) = ctx.saved_tensors
    return None, dy.new_zeros(ctx.rows, dy.shape[-1]).index_add(0, ids, dy)


def overwritten(ctx, dy):
    (ids,) = ctx.saved_tensors
    table = dy.new_zeros(ctx.rows, dy.shape[-1])
    table[ids] = dy
    return None, table


def wrong_place(ctx, dy):
    return embedding_backward(ctx, dy)[::-1]


def ids_and_table():
    return torch.tensor([1, 3, 1, 0]), *normal((5, 3))()


right("embedding", function(embedding_forward, embedding_backward), ids_and_table)
wrong(
    "embedding: repeated", function(embedding_forward, overwritten), ids_and_table, "table", "one overwrote"
)
wrong("embedding: place", function(embedding_forward, wrong_place), ids_and_table, "table", "returns None")


def dropout_forward(ctx, x):
    mask = (torch.rand_like(x) < 0.6).to(x) / 0.6
    ctx.save_for_backward(mask)
    return x * mask


def dropout_backward(ctx, dy):
    return dy * ctx.saved_tensors[0]


def drawn_anew(ctx, dy):
    return dy * (torch.rand_like(dy) < 0.6) / 0.6


def unscaled(ctx, dy):
    return dy * (ctx.saved_tensors[0] > 0)


right("dropout", function(dropout_forward, dropout_backward), normal((4, 5)))
wrong("dropout: anew", function(dropout_forward, drawn_anew), normal((4, 5)), "x", "")
wrong("dropout: scale", function(dropout_forward, unscaled), normal((4, 5)), "x", "0.6")


def moments_forward(ctx, x):
    ctx.save_for_backward(x)
    return x.mean(0), (x * x).mean(0)


def moments_backward(ctx, dmean, dsquare):
    (x,) = ctx.saved_tensors
    return (dmean + 2 * x * dsquare) / x.shape[0]


def factor_two(ctx, dmean, dsquare):
    (x,) = ctx.saved_tensors
    return (dmean + x * dsquare) / x.shape[0]


def unused_output(ctx, dmean, dsquare):
    return moments_backward(ctx, dmean, dsquare)


def moments_forward_with_none(ctx, x):
    ctx.set_materialize_grads(False)
    return moments_forward(ctx, x)


MOMENTS = normal((4, 3))
right("moments", function(moments_forward, moments_backward), MOMENTS)
wrong("moments: factor", function(moments_forward, factor_two), MOMENTS, "x", "")
wrong(
    "moments: None",
    function(moments_forward_with_none, unused_output),
    MOMENTS,
    "each output alone",
    "only output 0",
)


class OnTheClass:
    """A place that all calls share."""

    x = None


def square_forward(ctx, x):
    OnTheClass.x = x
    ctx.save_for_backward(x)
    return x * x


def square_backward(ctx, dy):
    return 2 * ctx.saved_tensors[0] * dy


def last_call(ctx, dy):
    return 2 * OnTheClass.x * dy


def one_of_two_uses(ctx, dy):
    return ctx.saved_tensors[0] * dy


def detached(ctx, dy):
    return 2 * ctx.saved_tensors[0].detach() * dy


def dy_forgotten(ctx, dy):
    return 2 * ctx.saved_tensors[0]


def nan_at_one_entry(ctx, dy):
    return (
        2
        * torch.where(ctx.saved_tensors[0] == ctx.saved_tensors[0].max(), math.nan, ctx.saved_tensors[0])
        * dy
    )


def flat_view(ctx, dy):
    return 2 * ctx.saved_tensors[0] * dy.view(-1).view(dy.shape)


def memory_order(ctx, dy):
    dy = dy.as_strided(dy.shape, (dy.shape[1], 1))
    return 2 * ctx.saved_tensors[0] * dy


def input_in_place(ctx, x):
    y = square_forward(ctx, x)
    x.data.add_(1)
    return y


def output_in_place(ctx, x):
    y = x.exp()
    ctx.save_for_backward(y)
    y.mul_(2)  # PyTorch saves the tensors at the end of forward
    return y


def copied_output(ctx, x):
    y = x.exp()
    ctx.save_for_backward(y)
    return y.mul_(2) / 2


def saved_output(ctx, dy):
    return ctx.saved_tensors[0] * dy


X = normal((3, 4))
right("square", function(square_forward, square_backward), X, options={"hessian": True})
wrong("square: state", function(square_forward, last_call), X, "x", "runs a second time before backward")
wrong("square: one use", function(square_forward, one_of_two_uses), X, "x", "0.5")
wrong("square: detached", function(square_forward, detached), X, "second derivatives", "wrong result")
wrong("square: dy", function(square_forward, dy_forgotten), X, "x", "")
wrong("square: NaN", function(square_forward, nan_at_one_entry), X, "x", "NaN")
wrong(
    "square: view", function(square_forward, flat_view), X, "any layout of dy", "use reshape in place of view"
)
wrong(
    "square: memory",
    function(square_forward, memory_order),
    X,
    "any layout of dy",
    "share one place in memory",
)
wrong("square: input in place", function(input_in_place, square_backward), X, "x", "")
right("exp", function(output_in_place, saved_output), X)
wrong(
    "exp: saved in place", function(copied_output, saved_output), X, "x", "it is 2 = 2 times the correct one"
)

# ---------------------------------------------------------------------------------------------------------
# Losses, modules and plain functions


def loss_forward(ctx, logits, targets):
    p = logits.softmax(-1)
    kept = targets != 0
    ctx.save_for_backward(p, targets)
    return -(p.gather(-1, targets[:, None])[:, 0].log() * kept).sum() / kept.sum()


def loss_backward(ctx, dloss):
    p, targets = ctx.saved_tensors
    kept = (targets != 0)[:, None]
    one_hot = torch.nn.functional.one_hot(targets, p.shape[-1])
    return dloss * (p - one_hot) * kept / kept.sum(), None


def padding_counted(ctx, dloss):
    p, targets = ctx.saved_tensors
    kept = (targets != 0)[:, None]
    one_hot = torch.nn.functional.one_hot(targets, p.shape[-1])
    return dloss * (p - one_hot) * kept / len(targets), None


def padding_kept(ctx, dloss):
    p, targets = ctx.saved_tensors
    one_hot = torch.nn.functional.one_hot(targets, p.shape[-1])
    return dloss * (p - one_hot) / (targets != 0).sum(), None


def logits_and_targets():
    return *normal((4, 5))(), torch.tensor([2, 0, 4, 1])


right("loss", function(loss_forward, loss_backward), logits_and_targets)
wrong("loss: count", function(loss_forward, padding_counted), logits_and_targets, "logits", "0.75")
wrong("loss: padding", function(loss_forward, padding_kept), logits_and_targets, "logits", "should be 0")


class Block(torch.nn.Module):
    """A block with a residual connection and a function for the branch."""

    def __init__(self, branch):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)
        self.branch = branch

    def forward(self, x):
        return x + self.branch(self.linear, x)


def without_graph(linear, x):
    with torch.no_grad():
        return linear(x).tanh()


right("block", Block(lambda linear, x: linear(x).tanh()), X)
wrong("block: no_grad", Block(without_graph), X, "linear.weight", "backward returns None")
wrong("block: detach", Block(lambda linear, x: linear(x.detach()).tanh()), X, "x", "")
wrong("block: data", lambda x: torch.from_numpy(x.detach().numpy() * 2), X, "x", "leaves the graph")
right("plain function", lambda x: torch.nn.functional.gelu(x).cumsum(-1), X)
right("sorted", lambda x: x.sort(-1), X)
right("cholesky", lambda x: torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(3, dtype=x.dtype)), X)
right("LSTM", torch.nn.LSTM(4, 3), normal((2, 1, 4)))
right("batch norm", torch.nn.BatchNorm1d(4), X)
