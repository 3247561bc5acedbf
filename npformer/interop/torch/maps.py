"""attention_maps: the attention weights of any PyTorch module that contains nn.MultiheadAttention."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from npformer.backend import Array
from npformer.errors import UserError

SIGNATURE = inspect.signature(nn.MultiheadAttention.forward)


def attention_maps(module: nn.Module, /, *inputs: Any, **settings: Any) -> dict[str, Array]:
    """Run a module and return the attention weights of every nn.MultiheadAttention in it.

    The weights are those of the softmax, before dropout. They are computed from the inputs and the weights of
    each attention module, so they are also found where PyTorch computes none: with need_weights=False, in the
    layers of nn.Transformer, and on its fast paths. The row of a query that may attend to no key is 0.

    The module runs once, as module(*inputs, **settings) without gradients and in the mode that it is in. Call
    module.eval() first for maps without dropout in the layers below. Afterwards its parameters, gradients,
    buffers, hooks, flags and mode are as before, and so are the random generators of PyTorch.

    Args:
        module: The module.
        inputs: Its positional arguments. Nested tensors may be among them.
        settings: Its keyword arguments, such as masks.

    Returns:
        A dict from the dotted name of each attention module, as in module.named_modules(), to an array
        (B, H, T, S), in the order of the computation. The second call of the same attention module has the
        name "NAME#2", the third one "NAME#3". Attention modules that were not called have no entry. With
        add_bias_kv or add_zero_attn, S counts the additional keys, which are the last ones. B is 1 for inputs
        without a batch. For nested tensors, T and S are the length of the longest sentence, and padding has
        the weight 0.

    Raises:
        UserError: If the module contains no nn.MultiheadAttention, or one of a subclass with a forward of its
            own, or if none was called. Errors of the module itself are raised as they are.
    """
    attentions = _attentions(module)
    maps: dict[str, Array] = {}
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(_same_random_numbers(module))
        stack.enter_context(_without_conversion_to_nested(module))
        for name, attention in attentions.items():
            hook = attention.register_forward_hook(_recorder(name, maps), with_kwargs=True)
            stack.callback(hook.remove)
        # the module may change its buffers, as batch norm does, so it gets copies
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        torch.func.functional_call(module, buffers, inputs, settings)
    if not maps:
        raise UserError(
            f"the forward pass of this {type(module).__name__} called none of its attention modules "
            f"({', '.join(attentions)}): give inputs with which it does"
        )
    return maps


def _attentions(module: Any) -> dict[str, nn.MultiheadAttention]:
    """Return the attention modules by name.

    Raises:
        UserError: If there is none, or if one computes something else.
    """
    if not isinstance(module, nn.Module):
        raise UserError(
            f"attention_maps takes a PyTorch module and got a {type(module).__name__}: give an nn.Module"
        )
    found = {name: m for name, m in module.named_modules() if isinstance(m, nn.MultiheadAttention)}
    if not found:
        raise UserError(
            f"this {type(module).__name__} contains no nn.MultiheadAttention: attention_maps reads no other "
            "kind of attention"
        )
    for name, attention in found.items():
        if type(attention).forward is not nn.MultiheadAttention.forward:
            raise UserError(
                f"the attention module {name!r} is a {type(attention).__name__} with a forward of its own, "
                "which may compute other weights: use nn.MultiheadAttention"
            )
    return found


@contextmanager
def _same_random_numbers(module: nn.Module) -> Iterator[None]:
    """Restore the random generators of PyTorch afterwards, on the CPU and on the GPUs of the module."""
    gpus = {p.device.index for p in module.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(gpus)):
        yield


@contextmanager
def _without_conversion_to_nested(module: nn.Module) -> Iterator[None]:
    """Keep nn.TransformerEncoder from removing the padding, so that every map has the length of the inputs.

    The fast path of its layers, which calls no attention module, is off while they have hooks.
    """
    encoders = [m for m in module.modules() if isinstance(m, nn.TransformerEncoder)]
    encoders = [m for m in encoders if getattr(m, "use_nested_tensor", False)]  # old pickles lack it
    for encoder in encoders:
        encoder.use_nested_tensor = False
    try:
        yield
    finally:
        for encoder in encoders:
            encoder.use_nested_tensor = True


def _recorder(name: str, maps: dict[str, Array]) -> Callable[..., None]:
    """Return a forward hook that adds the weights of a call of an attention module to the maps."""
    calls = 0

    def record(attention: Any, args: Any, kwargs: Any, output: Any) -> None:
        nonlocal calls
        calls += 1
        call = SIGNATURE.bind(attention, *args, **kwargs).arguments
        query, masks = call["query"], (call.get("key_padding_mask"), call.get("attn_mask"))
        with torch.autocast(query.device.type, enabled=False):  # full precision in a forward pass with less
            weights = _weights(attention, query, call["key"], *masks)
        maps[name if calls == 1 else f"{name}#{calls}"] = weights.cpu().numpy()

    return record


def _weights(
    attention: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
) -> Tensor:
    """Return softmax(q kᵀ / sqrt(K) + masks), of shape (B, H, T, S), for the arguments of a call.

    The hint is_causal is not needed: PyTorch wants the mask beside it.
    """
    if query.is_nested:  # then query and key are the same tensor, and there are no masks
        sentences = query.unbind()
        lengths = torch.tensor([len(sentence) for sentence in sentences], device=query.device)
        query = key = nn.utils.rnn.pad_sequence(list(sentences), batch_first=True)  # (B, T, D)
        is_padding = torch.arange(query.shape[1], device=query.device) >= lengths[:, None]  # (B, T)
        weights = _batch_weights(attention, query, key, is_padding, None)
        return weights.masked_fill(is_padding[:, None, :, None], 0)
    if query.dim() == 2:  # no batch
        query, key = query[None], key[None]
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    elif not attention.batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    return _batch_weights(attention, query, key, key_padding_mask, attn_mask)


def _batch_weights(
    attention: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
) -> Tensor:
    """Return the weights (B, H, T, S) for query (B, T, D), key (B, S, E) and masks that are bool or float."""
    q, k = _queries_and_keys(attention, query, key)  # (B, H, T, K) and (B, H, S, K)
    scores = q @ k.transpose(-2, -1) / math.sqrt(attention.head_dim)  # (B, H, T, S)
    if attn_mask is not None:
        shape = (-1, attention.num_heads) if attn_mask.dim() == 3 else (1, 1)  # (B·H, T, S) or (T, S)
        scores = _add_mask(scores, attn_mask.reshape(*shape, *attn_mask.shape[-2:]))
    if key_padding_mask is not None:
        scores = _add_mask(scores, key_padding_mask[:, None, None, :])
    is_blocked = (scores == -math.inf).all(-1, keepdim=True)  # (B, H, T, 1)
    return scores.softmax(-1).masked_fill(is_blocked, 0)


def _queries_and_keys(attention: nn.MultiheadAttention, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Return the queries (B, H, T, K) and keys (B, H, S, K) of all heads, at least in float32.

    The keys that add_bias_kv and add_zero_attn append to every sentence are the last ones.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    if attention.in_proj_weight is None:
        weights = [attention.q_proj_weight, attention.k_proj_weight]
    else:
        weights = list(attention.in_proj_weight.chunk(3)[:2])
    biases: Any = (None, None) if attention.in_proj_bias is None else attention.in_proj_bias.chunk(3)
    q, k = (
        nn.functional.linear(x.to(dtype), w.to(dtype), None if b is None else b.to(dtype))
        for x, w, b in zip((query, key), weights, biases[:2], strict=True)
    )
    n_sentences = len(k)
    if attention.bias_k is not None:
        k = torch.cat([k, attention.bias_k.to(dtype).expand(n_sentences, 1, -1)], 1)
    if attention.add_zero_attn:
        k = torch.cat([k, k.new_zeros(n_sentences, 1, k.shape[-1])], 1)
    heads = attention.num_heads, attention.head_dim
    return q.unflatten(-1, heads).transpose(1, 2), k.unflatten(-1, heads).transpose(1, 2)


def _add_mask(scores: Tensor, mask: Tensor) -> Tensor:
    """Add a float mask to the scores (B, H, T, S), or -inf where a bool mask is True.

    A mask has no entries for the keys that add_bias_kv and add_zero_attn append. They are never masked.
    """
    mask = nn.functional.pad(mask, (0, scores.shape[-1] - mask.shape[-1]))
    return scores.masked_fill(mask, -math.inf) if mask.dtype == torch.bool else scores + mask
