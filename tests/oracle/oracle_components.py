"""Single components computed by PyTorch: activations, norm, softmax, losses, attention, Adam and clipping."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def components():
    """Return the inputs, the output y, the given gradient dy and the computed gradients of each component."""
    return {
        "gelu": elementwise(F.gelu),
        "gelu_tanh": elementwise(lambda x: F.gelu(x, approximate="tanh")),
        "swish": elementwise(F.silu),
        "relu": elementwise(F.relu),
        "softmax": rows(lambda x: F.softmax(x, -1)),
        "log_softmax": rows(lambda x: F.log_softmax(x, -1)),
        "layer_norm": layer_norm(),
        "cross_entropy": cross_entropy(),
        "kl_divergence": kl_divergence(),
        "l2_distance": l2_distance(),
        "lora_linear": lora_linear(),
        "dpo": dpo(),
        "grpo": grpo(),
        "route": route(),
        "combine": combine(),
        "load_balancing": load_balancing(),
        "attention": attention(),
        "multi_head": multi_head(),
        **{f"{kind}/{side}": recurrent(kind, side) for kind in ("lstm", "gru") for side in ("one", "both")},
        "adam": adam(),
        "clip": clip(),
    }


def draw(seed, *shape):
    """Draw normal numbers, the same in each run."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def forward_backward(f, dy, **inputs):
    """Return y = f(inputs), and the gradient dname of every input that is a number and not an index."""
    leaves = {name: x.clone().requires_grad_() if x.is_floating_point() else x for name, x in inputs.items()}
    y = f(*leaves.values())
    dy = torch.ones_like(y) if dy is None else dy
    y.backward(dy)
    grads = {f"d{name}": x.grad for name, x in leaves.items() if x.requires_grad}
    arrays = {**inputs, "y": y.detach(), "dy": dy, **grads}
    return {name: array.numpy() for name, array in arrays.items()}


def elementwise(f):
    """Return numbers from -8, where the tails are, to 8."""
    x = torch.linspace(-8, 8, 41)
    return forward_backward(f, draw(1, 41), x=x)


def rows(f):
    """Return rows with different means, some far from 0."""
    x = draw(2, 4, 3, 7) * 5 + draw(3, 4, 3, 1) * 100
    return forward_backward(f, draw(4, 4, 3, 7), x=x)


def layer_norm():
    return forward_backward(
        lambda x, gain, bias: F.layer_norm(x, (9,), gain, bias, 1e-5),
        draw(5, 3, 4, 9),
        x=draw(6, 3, 4, 9) * 2 + 1,
        gain=draw(7, 9),
        bias=draw(8, 9),
    )


def cross_entropy():
    targets = torch.tensor([[3, 1, 4, 0, 0], [5, 2, 6, 5, 0]])  # 0 is padding

    def loss(logits, targets):
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, label_smoothing=0.1)

    return forward_backward(loss, torch.tensor(1.7), logits=draw(9, 2, 5, 7) * 3, targets=targets)


def kl_divergence():
    q = F.softmax(draw(10, 5, 6), -1)
    q[2] = torch.eye(6)[4]  # a distribution with zeros
    arrays = forward_backward(
        lambda logits: F.kl_div(F.log_softmax(logits, -1), q, reduction="batchmean"),
        torch.tensor(0.6),
        logits=draw(11, 5, 6) * 2,
    )
    return {**arrays, "q": q.numpy()}


def l2_distance():
    """Compute the distance of each row, then the mean: the document's loss, which PyTorch does not have."""
    q = F.softmax(draw(17, 5, 6), -1)
    arrays = forward_backward(
        lambda logits: torch.linalg.vector_norm(F.softmax(logits, -1) - q, dim=-1).mean(),
        torch.tensor(0.6),
        logits=draw(18, 5, 6) * 2,
    )
    return {**arrays, "q": q.numpy()}


def lora_linear():
    weight = draw(20, 6, 7)
    arrays = forward_backward(
        lambda x, a, b: F.linear(x, (weight + 0.5 * a @ b).T),
        draw(21, 2, 3, 7),
        x=draw(22, 2, 3, 6),
        a=draw(23, 6, 2),
        b=draw(24, 2, 7),
    )
    return {**arrays, "weight": weight.numpy()}


def dpo():
    margin = draw(25, 6)
    arrays = forward_backward(
        lambda chosen, rejected: -F.logsigmoid(0.7 * (chosen - rejected - margin)).mean(),
        torch.tensor(1.3),
        chosen=draw(26, 6) * 3,
        rejected=draw(27, 6) * 3,
    )
    return {**arrays, "reference_margin": margin.numpy()}


def grpo():
    old, reference, advantages = draw(28, 5, 4), draw(29, 5, 4), draw(30, 5)
    mask = torch.from_numpy(np.random.default_rng(31).random((5, 4)) < 0.7)

    def loss(log_probs):
        ratio, gain = (log_probs - old).exp(), advantages[:, None]
        objective = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        divergence = (reference - log_probs).exp() - (reference - log_probs) - 1
        return (0.3 * divergence - objective)[mask].mean()

    arrays = forward_backward(loss, torch.tensor(0.8), log_probs=old + 0.3 * draw(32, 5, 4))
    given = {"old": old, "reference": reference, "advantages": advantages, "mask": mask}
    return {**arrays, **{name: array.numpy() for name, array in given.items()}}


def route():
    def weights(logits):
        largest = F.softmax(logits, -1).topk(2).values
        return largest / largest.sum(-1, keepdim=True)

    return forward_backward(weights, draw(33, 6, 2), logits=draw(34, 6, 5) * 2)


def combine():
    return forward_backward(
        lambda weights, outputs: torch.einsum("nk,nkd->nd", weights, outputs),
        draw(35, 6, 4),
        weights=draw(36, 6, 2),
        outputs=draw(37, 6, 2, 4),
    )


def load_balancing():
    logits = draw(38, 6, 5) * 2
    chosen = logits.topk(2).indices

    def loss(logits):
        counts = F.one_hot(chosen, 5).sum(1).double().mean(0)  # of each expert, over the tokens
        return 5 * (counts * F.softmax(logits, -1).mean(0)).sum()

    return {**forward_backward(loss, torch.tensor(0.7), logits=logits), "chosen": chosen.numpy()}


def attention():
    mask = torch.from_numpy(np.random.default_rng(12).random((2, 1, 5, 6)) < 0.6)
    mask[..., 0] = True  # every query attends to at least one key
    arrays = forward_backward(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        draw(13, 2, 3, 5, 7),
        q=draw(14, 2, 3, 5, 4),
        k=draw(15, 2, 3, 6, 4),
        v=draw(16, 2, 3, 6, 7),
    )
    return {**arrays, "mask": mask.numpy()}


def multi_head():
    """Run nn.MultiheadAttention with separate query, key and value, and padded keys."""
    layer = nn.MultiheadAttention(12, 3, batch_first=True)
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data = draw(20 + seed, *parameter.shape) * 0.4
    padded = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    arrays = forward_backward(
        lambda query, key, value: layer(query, key, value, padded, need_weights=False)[0],
        draw(30, 2, 5, 12),
        query=draw(31, 2, 5, 12),
        key=draw(32, 2, 6, 12),
        value=draw(33, 2, 6, 12),
    )
    for kind, of in {"value": lambda p: p.detach(), "grad": lambda p: p.grad}.items():
        arrays[f"{kind}/query_key_value.weight"] = of(layer.in_proj_weight).T.numpy().copy()
        arrays[f"{kind}/query_key_value.bias"] = of(layer.in_proj_bias).numpy().copy()
        arrays[f"{kind}/output.weight"] = of(layer.out_proj.weight).T.numpy().copy()
        arrays[f"{kind}/output.bias"] = of(layer.out_proj.bias).numpy().copy()
    return {**arrays, "mask": ~padded[:, None, None, :].numpy()}


def recurrent(kind, side):
    """Run nn.LSTM or nn.GRU, one-directional or bidirectional, on sentences of 6, 4 and 1 tokens.

    The names are "lstm/both" and so on.
    """
    both = side == "both"
    layer = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](5, 4, batch_first=True, bidirectional=both)
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data = draw(60 + seed, *parameter.shape) * 0.6
    lengths = torch.tensor([6, 4, 1])
    mask = torch.arange(6) < lengths[:, None]  # (3, 6)

    def read(x):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y, _ = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
        return y

    dy = draw(71, 3, 6, 8 if both else 4) * mask[..., None]  # no gradient comes from padding
    arrays = forward_backward(read, dy, x=draw(70, 3, 6, 5))
    for name, parameter in layer.named_parameters():
        ours = ("input_projection" if "_ih_" in name else "hidden_projection") + (
            ".weight" if "weight" in name else ".bias"
        )
        if both:
            ours = ("backwards." if name.endswith("_reverse") else "forwards.") + ours
        arrays[f"value/{ours}"] = parameter.detach().numpy().T.copy()
        arrays[f"grad/{ours}"] = parameter.grad.numpy().T.copy()
    return {**arrays, "mask": mask.numpy()}


def adam():
    """Make five steps with given gradients, some tiny and some 0, and a changing learning rate."""
    start, grads, rates = draw(40, 8), draw(41, 5, 8), torch.tensor([0.1, 0.2, 0.05, 0.1, 0.01])
    grads[:, 0] = 0
    grads[:, 1] *= 1e-8
    parameter = nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([parameter], betas=(0.9, 0.98), eps=1e-9)
    values = []
    for grad, rate in zip(grads, rates, strict=True):
        parameter.grad = grad.clone()
        optimizer.param_groups[0]["lr"] = float(rate)
        optimizer.step()
        values.append(parameter.detach().clone())
    arrays = {"start": start, "grads": grads, "rates": rates, "values": torch.stack(values)}
    return {name: array.numpy() for name, array in arrays.items()}


def clip():
    """PyTorch divides by norm + 1e-6, so its clipped gradient is shorter by this factor."""
    grads = draw(42, 20)
    parameter = nn.Parameter(torch.zeros(20))
    parameter.grad = grads.clone()
    norm = nn.utils.clip_grad_norm_([parameter], 0.5)
    return {"grads": grads.numpy(), "norm": norm.numpy(), "clipped": parameter.grad.numpy()}
