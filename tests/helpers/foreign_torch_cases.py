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
        drawn = (torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes)
        return tuple(x.to(dtype) for x in drawn)

    return draw


def function(forward, backward):
    """Return the autograd.Function with this forward and this backward pass."""
    passes = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Example", (Function,), passes)


def with_rule(forward):
    """Return a function that makes an autograd.Function from rule(*saved tensors, *dy), its backward pass."""
    return lambda rule: function(forward, lambda ctx, *dy: rule(*ctx.saved_tensors, *dy))


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


def softmax_slope(dp, p):
    return p * (dp - (dp * p).sum(-1, keepdim=True))


def attention_rule(weights=causal_weights, slope=softmax_slope):
    """Return the backward pass of attention from two of its parts."""

    def rule(q, k, v, dy):
        p = weights(q, k)
        ds = slope(dy @ v.mT, p) / math.sqrt(q.shape[-1])
        return ds @ k, ds.mT @ q, p.mT @ dy

    return rule


def without_scale(q, k, v, dy):
    p = causal_weights(q, k)
    ds = softmax_slope(dy @ v.mT, p)
    return ds @ k, ds.mT @ q, p.mT @ dy


def exchanged(q, k, v, dy):
    dq, dk, dv = attention_rule()(q, k, v, dy)
    return dk, dq, dv


def values_not_transposed(q, k, v, dy):
    dq, dk, _ = attention_rule()(q, k, v, dy)
    return dq, dk, causal_weights(q, k) @ dy


attend = with_rule(attention_forward)
right_attention = attend(attention_rule())
without_mask = attend(attention_rule(lambda q, k: (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)))
over_queries = attend(attention_rule(slope=lambda dp, p: p * (dp - (dp * p).sum(-2, keepdim=True))))
without_sum = attend(attention_rule(slope=lambda dp, p: p * dp))
in_float32 = attend(attention_rule(lambda q, k: causal_weights(q.float(), k.float()).double()))

QKV = normal((2, 5, 3), (2, 5, 3), (2, 5, 3))
right("attention", right_attention, QKV)
wrong("attention: mask", without_mask, QKV, "q", "")
wrong("attention: scale", attend(without_scale), QKV, "q", "√3")
wrong("attention: axis", over_queries, QKV, "q", "all gradients are correct")
wrong("attention: softmax", without_sum, QKV, "q", "")
wrong("attention: exchanged", attend(exchanged), QKV, "q", "the gradient of k")
wrong("attention: transpose", attend(values_not_transposed), QKV, "v", "is not transposed")
wrong("attention: float32", in_float32, QKV, "q", "float32")

KERNEL, HALF, SINGLE = (
    {"reference": attention, "inputs": normal((2, 8, 4), (2, 8, 4), (2, 8, 4), dtype=dtype)}
    for dtype in (torch.bfloat16, torch.float16, torch.float32)
)
right("attention in bfloat16", right_attention, **KERNEL)
right("attention in float16", right_attention, **HALF)
right("attention in float32", right_attention, **SINGLE)
wrong("attention in bfloat16: mask", without_mask, row="q", words="", **KERNEL)
wrong("attention in float16: scale", attend(without_scale), row="q", words="= 2", **HALF)
wrong("attention in float32: axis", over_queries, row="q", words="", **SINGLE)

# ---------------------------------------------------------------------------------------------------------
# A linear layer


def linear_forward(ctx, x, w, b):
    ctx.save_for_backward(x, w)
    return x @ w + b


def other_input_asked(ctx, dy):
    x, w = ctx.saved_tensors
    return dy @ w.T if ctx.needs_input_grad[1] else None, x.T @ dy, dy.sum(0)


linear = with_rule(linear_forward)
right_linear = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(0)))
bias_mean = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.mean(0)))
bias_axis = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(1)))
bias_none = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy, None))
transposed = linear(lambda x, w, dy: (dy @ w.T, dy.T @ x, dy.sum(0)))
not_transposed = linear(lambda x, w, dy: (dy @ w, x.T @ dy, dy.sum(0)))
weight_in_float32 = linear(lambda x, w, dy: (dy @ w.T, (x.float().T @ dy.float()).double(), dy.sum(0)))
two_of_three = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy))
counted_twice = linear(lambda x, w, dy: (dy @ w.T, x.T @ dy * 2, dy.sum(0)))

XWB = normal((4, 4), (4, 4), (4,))
right("linear", right_linear, XWB)
wrong("linear: mean", bias_mean, XWB, "b", "averaged instead of summed")
wrong("linear: axis", bias_axis, XWB, "b", "the sum runs over the wrong axes")
wrong("linear: None", bias_none, XWB, "b", "backward returns None")
wrong("linear: transposed", transposed, XWB, "w", "transposed")
wrong("linear: transpose", not_transposed, XWB, "x", "transposed")
wrong("linear: float32", weight_in_float32, XWB, "w", "float32")
wrong("linear: count", two_of_three, XWB, "backward", "returned 2 gradients")
wrong("linear: shape", transposed, normal((5, 4), (4, 3), (3,)), "w", "shape [3, 4]")
wrong("linear: needs", function(linear_forward, other_input_asked), XWB, "each input alone", "of x")
wrong("linear: twice", counted_twice, XWB, "w", "counted twice")

# ---------------------------------------------------------------------------------------------------------
# Layer normalization, softmax


def mean(x):
    return x.mean(-1, keepdim=True)


def norm_forward(ctx, x, gain):
    rstd = (x.var(-1, keepdim=True, unbiased=False) + 1e-5).rsqrt()
    normalized = (x - mean(x)) * rstd
    ctx.save_for_backward(normalized, rstd, gain)
    return normalized * gain


def norm(slope):
    """Return the Function whose dx is slope(normalized, rstd, gain, dy)."""

    def rule(n, rstd, gain, dy):
        dgain = (dy * n).sum(0)
        return slope(n, rstd, gain, dy), dgain

    return with_rule(norm_forward)(rule)


def norm_slope(n, rstd, gain, dy):
    d = dy * gain
    return rstd * (d - mean(d) - n * mean(d * n))


def without_mean(n, rstd, gain, dy):
    d = dy * gain
    return rstd * (d - n * mean(d * n))


def without_variance(n, rstd, gain, dy):
    d = dy * gain
    return rstd * (d - mean(d))


def without_gain(n, rstd, gain, dy):
    return rstd * (dy - mean(dy) - n * mean(dy * n))


def saved_in_place(n, rstd, gain, dy):
    d = dy * gain
    return rstd * (d - mean(d) - n.mul_(mean(d * n)))


def softmax_forward(ctx, x):
    y = x.softmax(-1)
    ctx.save_for_backward(y)
    return y


NORM, LOGITS, softmax = normal((3, 6), (6,)), normal((3, 5)), with_rule(softmax_forward)
dy_in_place = softmax(lambda y, dy: dy.mul_(y) - y * dy.sum(-1, keepdim=True))
right("layer norm", norm(norm_slope), NORM)
wrong("layer norm: mean", norm(without_mean), NORM, "x", "")
wrong("layer norm: variance", norm(without_variance), NORM, "x", "")
wrong("layer norm: gain", norm(without_gain), NORM, "x", "")
wrong("layer norm: in place", norm(saved_in_place), NORM, "backward", "modified in place")
right("softmax", softmax(lambda y, dy: softmax_slope(dy, y)), LOGITS)
wrong("softmax: diagonal", softmax(lambda y, dy: y * (1 - y) * dy), LOGITS, "x", "")
wrong("softmax: dy", dy_in_place, LOGITS, "inputs not modified", "into dy")

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


repeated, misplaced = (function(embedding_forward, backward) for backward in (overwritten, wrong_place))
right("embedding", function(embedding_forward, embedding_backward), ids_and_table)
wrong("embedding: repeated", repeated, ids_and_table, "table", "one overwrote")
wrong("embedding: place", misplaced, ids_and_table, "table", "returns None")


def dropout_forward(ctx, x):
    mask = (torch.rand_like(x) < 0.6).to(x) / 0.6
    ctx.save_for_backward(mask)
    return x * mask


FOUR, dropout = normal((4, 5)), with_rule(dropout_forward)
right("dropout", dropout(lambda mask, dy: dy * mask), FOUR)
wrong("dropout: anew", dropout(lambda mask, dy: dy * (torch.rand_like(dy) < 0.6) / 0.6), FOUR, "x", "")
wrong("dropout: scale", dropout(lambda mask, dy: dy * (mask > 0)), FOUR, "x", "0.6")


def moments_forward(ctx, x):
    ctx.save_for_backward(x)
    return x.mean(0), (x * x).mean(0)


def moments_forward_with_none(ctx, x):
    ctx.set_materialize_grads(False)
    return moments_forward(ctx, x)


def moments_rule(x, dmean, dsquare):
    return (dmean + 2 * x * dsquare) / x.shape[0]


MOMENTS, moments = normal((4, 3)), with_rule(moments_forward)
unused_output = with_rule(moments_forward_with_none)(moments_rule)
right("moments", moments(moments_rule), MOMENTS)
wrong("moments: factor", moments(lambda x, dm, ds: (dm + x * ds) / x.shape[0]), MOMENTS, "x", "")
wrong("moments: None", unused_output, MOMENTS, "each output alone", "only output 0")


class OnTheClass:
    """A place that all calls share."""

    x = None


def square_forward(ctx, x):
    OnTheClass.x = x
    ctx.save_for_backward(x)
    return x * x


def input_in_place(ctx, x):
    y = square_forward(ctx, x)
    x.data.add_(1)
    return y


def square_rule(x, dy):
    return 2 * x * dy


def memory_order(x, dy):
    dy = dy.as_strided(dy.shape, (dy.shape[1], 1))
    return 2 * x * dy


def output_in_place(ctx, x):
    y = x.exp()
    ctx.save_for_backward(y)
    y.mul_(2)  # PyTorch saves the tensors at the end of forward
    return y


def copied_output(ctx, x):
    y = x.exp()
    ctx.save_for_backward(y)
    return y.mul_(2) / 2


X, square = normal((3, 4)), with_rule(square_forward)
last_call = square(lambda x, dy: 2 * OnTheClass.x * dy)
nan_at_one_entry = square(lambda x, dy: 2 * torch.where(x == x.max(), math.nan, x) * dy)
flat_view = square(lambda x, dy: 2 * x * dy.view(-1).view(dy.shape))
saved_output = with_rule(copied_output)(lambda y, dy: y * dy)
right("square", square(square_rule), X, options={"hessian": True})
wrong("square: state", last_call, X, "x", "runs a second time before backward")
wrong("square: one use", square(lambda x, dy: x * dy), X, "x", "0.5")
wrong("square: detached", square(lambda x, dy: 2 * x.detach() * dy), X, "second derivatives", "wrong result")
wrong("square: dy", square(lambda x, dy: 2 * x), X, "x", "")
wrong("square: NaN", nan_at_one_entry, X, "x", "NaN")
wrong("square: view", flat_view, X, "any layout of dy", "use reshape in place of view")
wrong("square: memory", square(memory_order), X, "any layout of dy", "share one place in memory")
wrong("square: input in place", with_rule(input_in_place)(square_rule), X, "x", "")
right("exp", with_rule(output_in_place)(lambda y, dy: y * dy), X)
wrong("exp: saved in place", saved_output, X, "x", "it is 2 = 2 times the correct one")

# ---------------------------------------------------------------------------------------------------------
# Losses, modules and plain functions


def loss_forward(ctx, logits, targets):
    p = logits.softmax(-1)
    kept = targets != 0
    ctx.save_for_backward(p, targets)
    return -(p.gather(-1, targets[:, None])[:, 0].log() * kept).sum() / kept.sum()


def loss_rule(p, targets, dloss):
    kept = (targets != 0)[:, None]
    return dloss * (p - torch.nn.functional.one_hot(targets, p.shape[-1])) * kept / kept.sum(), None


def padding_counted(p, targets, dloss):
    kept = (targets != 0)[:, None]
    return dloss * (p - torch.nn.functional.one_hot(targets, p.shape[-1])) * kept / len(targets), None


def padding_kept(p, targets, dloss):
    return dloss * (p - torch.nn.functional.one_hot(targets, p.shape[-1])) / (targets != 0).sum(), None


def logits_and_targets():
    return *normal((4, 5))(), torch.tensor([2, 0, 4, 1])


loss = with_rule(loss_forward)
right("loss", loss(loss_rule), logits_and_targets)
wrong("loss: count", loss(padding_counted), logits_and_targets, "logits", "0.75")
wrong("loss: padding", loss(padding_kept), logits_and_targets, "logits", "should be 0")


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
