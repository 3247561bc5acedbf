"""Functions of PyTorch with a hand-written backward pass, right and wrong."""

import math
from functools import partial

import torch
from foreign_case import ForeignCase
from torch.autograd import Function
from torch.nn.functional import gelu, one_hot

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
    """Return an autograd.Function.

    Args:
        forward: forward(ctx, *inputs) saves tensors and returns the output.
        backward: backward(*saved, *dy) returns the gradients of the inputs.
    """

    def of_saved(ctx, *dy):
        return backward(*ctx.saved_tensors, *dy)

    methods = {"forward": staticmethod(forward), "backward": staticmethod(of_saved)}
    return type("Example", (Function,), methods)


def right(name, thing, inputs, **more):
    """Add a case whose gradients are correct."""
    CASES.append(ForeignCase(name, thing, inputs, **more))


def wrong(name, thing, inputs, row, words, **more):
    """Add a case with one mistake, the row of the report that finds it, and words of the diagnosis."""
    CASES.append(ForeignCase(name, thing, inputs, row, words, **more))


def cases(name, inputs, forward, backward, mistakes, **more):
    """Add a case for a right function, and one for each mistake in its backward pass.

    Args:
        name: The name of the function.
        inputs: A function that draws the inputs.
        forward: The forward pass.
        backward: The backward pass.
        mistakes: {name: (a wrong backward pass, the row that finds it, words of the diagnosis)}.
        more: Other arguments of the right case.
    """
    right(name, function(forward, backward), inputs, **more)
    for mistake, (wrong_backward, row, words) in mistakes.items():
        wrong(f"{name}: {mistake}", function(forward, wrong_backward), inputs, row, words)


# ---------------------------------------------------------------------------------------------------------
# Causal attention


def plain_weights(q, k):
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)


def causal_weights(q, k):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    blocked = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(blocked, -math.inf).softmax(-1)


def float32_weights(q, k):
    return causal_weights(q.float(), k.float()).double()


def attention(q, k, v):
    return causal_weights(q, k) @ v


def attention_forward(ctx, q, k, v):
    ctx.save_for_backward(q, k, v)
    return attention(q, k, v)


def attention_backward(q, k, v, dy, *, weights=causal_weights, scaled=True):
    p = weights(q, k)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True))
    ds = ds / math.sqrt(q.shape[-1]) if scaled else ds
    return ds @ k, ds.mT @ q, p.mT @ dy


def sum_over_queries(q, k, v, dy):
    p = causal_weights(q, k)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-2, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


def without_softmax_term(q, k, v, dy):
    p = causal_weights(q, k)
    ds = p * (dy @ v.mT) / math.sqrt(q.shape[-1])
    return ds @ k, ds.mT @ q, p.mT @ dy


def exchanged(q, k, v, dy):
    dq, dk, dv = attention_backward(q, k, v, dy)
    return dk, dq, dv


def values_not_transposed(q, k, v, dy):
    dq, dk, _ = attention_backward(q, k, v, dy)
    return dq, dk, causal_weights(q, k) @ dy


without_mask = partial(attention_backward, weights=plain_weights)
without_scale = partial(attention_backward, scaled=False)
MISTAKES = {
    "mask": (without_mask, "q", ""),
    "scale": (without_scale, "q", "√3"),
    "axis": (sum_over_queries, "q", "all gradients are correct"),
    "softmax": (without_softmax_term, "q", ""),
    "exchanged": (exchanged, "q", "the gradient of k"),
    "transpose": (values_not_transposed, "v", "is not transposed"),
    "float32": (partial(attention_backward, weights=float32_weights), "q", "float32"),
}
cases("attention", normal(*[(2, 5, 3)] * 3), attention_forward, attention_backward, MISTAKES)

# kernels in a data type of less precision, with the same function in float64 as the reference
for dtype, mistake, backward, words in (
    (torch.bfloat16, "mask", without_mask, ""),
    (torch.float16, "scale", without_scale, "= 2"),
    (torch.float32, "axis", sum_over_queries, ""),
):
    name = f"attention in {str(dtype).removeprefix('torch.')}"
    kernel = {"reference": attention, "inputs": normal(*[(2, 8, 4)] * 3, dtype=dtype)}
    right(name, function(attention_forward, attention_backward), **kernel)
    wrong(f"{name}: {mistake}", function(attention_forward, backward), row="q", words=words, **kernel)

# ---------------------------------------------------------------------------------------------------------
# A linear layer


def linear_forward(ctx, x, w, b):
    ctx.save_for_backward(x, w)
    return x @ w + b


def linear_backward(x, w, dy):
    return dy @ w.T, x.T @ dy, dy.sum(0)


def weight_transposed(x, w, dy):
    return dy @ w.T, dy.T @ x, dy.sum(0)


def weight_in_float32(x, w, dy):
    return dy @ w.T, (x.float().T @ dy.float()).double(), dy.sum(0)


MISTAKES = {
    "mean": (lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.mean(0)), "b", "averaged instead of summed"),
    "axis": (lambda x, w, dy: (dy @ w.T, x.T @ dy, dy.sum(1)), "b", "the sum runs over the wrong axes"),
    "None": (lambda x, w, dy: (dy @ w.T, x.T @ dy, None), "b", "backward returns None"),
    "transposed": (weight_transposed, "w", "transposed"),
    "transpose": (lambda x, w, dy: (dy @ w, x.T @ dy, dy.sum(0)), "x", "transposed"),
    "float32": (weight_in_float32, "w", "float32"),
    "count": (lambda x, w, dy: (dy @ w.T, x.T @ dy), "backward", "returned 2 gradients"),
    "twice": (lambda x, w, dy: (dy @ w.T, x.T @ dy * 2, dy.sum(0)), "w", "counted twice"),
}
cases("linear", normal((4, 4), (4, 4), (4,)), linear_forward, linear_backward, MISTAKES)
SHAPES = normal((5, 4), (4, 3), (3,))
wrong("linear: shape", function(linear_forward, weight_transposed), SHAPES, "w", "shape [3, 4]")


class OtherInputAsked(Function):
    """A linear layer that computes the gradient of x if that of w is needed."""

    forward = staticmethod(linear_forward)

    @staticmethod
    def backward(ctx, dy):
        dx, dw, db = linear_backward(*ctx.saved_tensors, dy)
        return dx if ctx.needs_input_grad[1] else None, dw, db


wrong("linear: needs", OtherInputAsked, normal((4, 4), (4, 4), (4,)), "each input alone", "of x")

# ---------------------------------------------------------------------------------------------------------
# Layer normalization, softmax


def norm_forward(ctx, x, gain):
    rstd = (x.var(-1, keepdim=True, unbiased=False) + 1e-5).rsqrt()
    normalized = (x - x.mean(-1, keepdim=True)) * rstd
    ctx.save_for_backward(normalized, rstd, gain)
    return normalized * gain


def norm_backward(n, rstd, gain, dy, *, mean=True, variance=True):
    d = dy * gain
    dx = d - d.mean(-1, keepdim=True) if mean else d
    dx = dx - n * (d * n).mean(-1, keepdim=True) if variance else dx
    return rstd * dx, (dy * n).sum(0)


def without_gain(n, rstd, gain, dy):
    return norm_backward(n, rstd, 1, dy)


def saved_in_place(n, rstd, gain, dy):
    dgain = (dy * n).sum(0)
    d = dy * gain
    dx = rstd * (d - d.mean(-1, keepdim=True) - n.mul_((d * n).mean(-1, keepdim=True)))
    return dx, dgain


MISTAKES = {
    "mean": (partial(norm_backward, mean=False), "x", ""),
    "variance": (partial(norm_backward, variance=False), "x", ""),
    "gain": (without_gain, "x", ""),
    "in place": (saved_in_place, "backward", "modified in place"),
}
cases("layer norm", normal((3, 6), (6,)), norm_forward, norm_backward, MISTAKES)


def softmax_forward(ctx, x):
    y = x.softmax(-1)
    ctx.save_for_backward(y)
    return y


def softmax_backward(y, dy):
    return y * (dy - (dy * y).sum(-1, keepdim=True))


MISTAKES = {
    "diagonal": (lambda y, dy: y * (1 - y) * dy, "x", ""),
    "dy": (lambda y, dy: dy.mul_(y) - y * dy.sum(-1, keepdim=True), "inputs not modified", "into dy"),
}
cases("softmax", normal((3, 5)), softmax_forward, softmax_backward, MISTAKES)

# ---------------------------------------------------------------------------------------------------------
# Integers, random numbers, several outputs, state

ROWS = 5  # of a table


def embedding_forward(ctx, ids, table):
    ctx.save_for_backward(ids)
    return table[ids]


def embedding_backward(ids, dy):
    return None, dy.new_zeros(ROWS, dy.shape[-1]).index_add(0, ids, dy)


def overwritten(ids, dy):
    table = dy.new_zeros(ROWS, dy.shape[-1])
    table[ids] = dy
    return None, table


def ids_and_table():
    return torch.tensor([1, 3, 1, 0]), *normal((ROWS, 3))()


MISTAKES = {
    "repeated": (overwritten, "table", "one overwrote"),
    "place": (lambda ids, dy: embedding_backward(ids, dy)[::-1], "table", "returns None"),
}
cases("embedding", ids_and_table, embedding_forward, embedding_backward, MISTAKES)


def dropout_forward(ctx, x):
    mask = (torch.rand_like(x) < 0.6).to(x) / 0.6
    ctx.save_for_backward(mask)
    return x * mask


MISTAKES = {
    "anew": (lambda mask, dy: dy * (torch.rand_like(dy) < 0.6) / 0.6, "x", ""),
    "scale": (lambda mask, dy: dy * (mask > 0), "x", "0.6"),
}
cases("dropout", normal((4, 5)), dropout_forward, lambda mask, dy: dy * mask, MISTAKES)


def moments_forward(ctx, x):
    ctx.save_for_backward(x)
    return x.mean(0), (x * x).mean(0)


def moments_forward_with_none(ctx, x):
    ctx.set_materialize_grads(False)
    return moments_forward(ctx, x)


def moments_backward(x, dmean, dsquare, factor=2):
    return (dmean + factor * x * dsquare) / x.shape[0]


MISTAKES = {"factor": (partial(moments_backward, factor=1), "x", "")}
cases("moments", normal((4, 3)), moments_forward, moments_backward, MISTAKES)
of_none = function(moments_forward_with_none, moments_backward)
wrong("moments: None", of_none, normal((4, 3)), "each output alone", "only output 0")


class OnTheClass:
    """A place that all calls share."""

    x = None


def square_forward(ctx, x):
    OnTheClass.x = x
    ctx.save_for_backward(x)
    return x * x


def square_backward(x, dy):
    return 2 * x * dy


def nan_at_one_entry(x, dy):
    return 2 * torch.where(x == x.max(), math.nan, x) * dy


def memory_order(x, dy):
    return 2 * x * dy.as_strided(dy.shape, (dy.shape[1], 1))


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


def saved_output(y, dy):
    return y * dy


X = normal((3, 4))
MISTAKES = {
    "state": (lambda x, dy: 2 * OnTheClass.x * dy, "x", "runs a second time before backward"),
    "one use": (lambda x, dy: x * dy, "x", "0.5"),
    "detached": (lambda x, dy: 2 * x.detach() * dy, "second derivatives", "wrong result"),
    "dy": (lambda x, dy: 2 * x, "x", ""),
    "NaN": (nan_at_one_entry, "x", "NaN"),
    "view": (
        lambda x, dy: 2 * x * dy.view(-1).view(dy.shape),
        "any layout of dy",
        "use reshape in place of view",
    ),
    "memory": (memory_order, "any layout of dy", "share one place in memory"),
}
cases("square", X, square_forward, square_backward, MISTAKES, options={"hessian": True})
wrong("square: input in place", function(input_in_place, square_backward), X, "x", "")
right("exp", function(output_in_place, saved_output), X)
in_place = function(copied_output, saved_output)
wrong("exp: saved in place", in_place, X, "x", "it is 2 = 2 times the correct one")

# ---------------------------------------------------------------------------------------------------------
# Losses, modules and plain functions


def loss_forward(ctx, logits, targets):
    p = logits.softmax(-1)
    kept = targets != 0
    ctx.save_for_backward(p, targets)
    return -(p.gather(-1, targets[:, None])[:, 0].log() * kept).sum() / kept.sum()


def loss_backward(p, targets, dloss):
    kept = (targets != 0)[:, None]
    return dloss * (p - one_hot(targets, p.shape[-1])) * kept / kept.sum(), None


def padding_counted(p, targets, dloss):
    kept = (targets != 0)[:, None]
    return dloss * (p - one_hot(targets, p.shape[-1])) * kept / len(targets), None


def padding_kept(p, targets, dloss):
    return dloss * (p - one_hot(targets, p.shape[-1])) / (targets != 0).sum(), None


def logits_and_targets():
    return *normal((4, 5))(), torch.tensor([2, 0, 4, 1])


MISTAKES = {"count": (padding_counted, "logits", "0.75"), "padding": (padding_kept, "logits", "should be 0")}
cases("loss", logits_and_targets, loss_forward, loss_backward, MISTAKES)


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
right("plain function", lambda x: gelu(x).cumsum(-1), X)
right("sorted", lambda x: x.sort(-1), X)
right("cholesky", lambda x: torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(3, dtype=x.dtype)), X)
right("LSTM", torch.nn.LSTM(4, 3), normal((2, 1, 4)))
right("batch norm", torch.nn.BatchNorm1d(4), X)
