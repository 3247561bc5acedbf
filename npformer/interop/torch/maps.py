"""attention_maps: the weights of every attention that a PyTorch module computes."""

from __future__ import annotations

import inspect
import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from npformer.backend import Array
from npformer.errors import UserError
from npformer.interop.torch.by_hand import SoftmaxTrace

SIGNATURE = inspect.signature(nn.MultiheadAttention.forward)
# parts of the names of functions that compute attention, but no weights that could be read beside them
UNREADABLE = (
    "flex_attention",
    "flash_attention",
    "efficient_attention",
    "fused_attention",
    "cudnn_attention",
)


def attention_maps(module: nn.Module, /, *inputs: Any, **settings: Any) -> dict[str, Array]:
    """Run a module and return the attention weights of every attention in it.

    These are nn.MultiheadAttention and the functions scaled_dot_product_attention and
    multi_head_attention_forward of torch.nn.functional, which most models call, among them those of
    transformers and timm in their usual setting. Their weights are computed from the queries, keys and masks
    of each call, so they are also found where PyTorch computes none. The row of a query that may attend to no
    key is 0. A module that computes its attention by itself is recognized by a softmax over the last axis
    but one or the last one, and a product of the result with values: so are the models of transformers with
    attn_implementation="eager". All weights are those of the softmax, before dropout.

    The module runs once, as module(*inputs, **settings) without gradients and in the mode that it is in. Call
    module.eval() first for maps without dropout in the layers below. Afterwards its parameters, gradients,
    buffers, hooks, flags and mode are as before, and so are the random generators of PyTorch. Of a compiled
    module, or of one in nn.DataParallel, the module inside runs, uncompiled and on its own device.

    Args:
        module: The module.
        inputs: Its positional arguments. Nested tensors may be among them.
        settings: Its keyword arguments, such as masks.

    Returns:
        A dict from the dotted name of the module that called an attention, as in module.named_modules(), to
        an array (B, H, T, S), in the order of the computation. Its second call has the name "NAME#2", the
        third one "NAME#3". What was not called has no entry. With add_bias_kv or add_zero_attn, S counts the
        additional keys, which are the last ones. B is 1 for inputs without a batch, and H is 1 for those
        without heads. For nested tensors, T and S are the length of the longest sentence, and padding has the
        weight 0.

    Raises:
        UserError: If the module calls no such attention, or one that cannot be read, such as flex_attention
            or a module of TorchScript: no attention is left out. Errors of the module itself are raised as
            they are.
    """
    module = _inner(module)
    calls = _Calls()
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(_same_random_numbers(module))
        stack.enter_context(_without_conversion_to_nested(module))
        stack.enter_context(_uncompiled(module))
        for name, part in module.named_modules():
            name = name.replace("_orig_mod.", "").removesuffix("._orig_mod")
            for hook in calls.watch(name, part):
                stack.callback(hook.remove)
        stack.enter_context(calls)
        stack.enter_context(calls.unseen)
        # the module may change its buffers, as batch norm does, so it gets copies
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        torch.func.functional_call(module, buffers, inputs, settings)
    calls.require_all(module)
    return calls.maps


def _inner(module: Any) -> nn.Module:
    """Return the module within nn.DataParallel or a compiled module, or the module itself.

    Raises:
        UserError: If it is no module, or if a part of it is TorchScript.
    """
    if not isinstance(module, nn.Module):
        raise UserError(
            f"attention_maps takes a PyTorch module and got a {type(module).__name__}: give an nn.Module"
        )
    while True:
        parallel = isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel))
        inner = module.module if parallel else getattr(module, "_orig_mod", None)
        if inner is None:
            break
        module = inner
    for name, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            raise UserError(
                f"{f'the part {name!r}' if name else 'this module'} is TorchScript, whose calls of attention "
                "cannot be seen: give the module that it was made from"
            )
    return module


@contextmanager
def _uncompiled(module: nn.Module) -> Iterator[None]:
    """Let compiled parts of a module, and flex_attention, run as they are written, so that calls are seen."""
    parts, flex = module.modules(), "torch.nn.attention.flex_attention"
    compiled = any(
        hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in parts
    )
    if compiled or flex in sys.modules:  # otherwise the compiler, which takes seconds to load, is not needed
        with torch.compiler.set_stance("force_eager"):
            yield
    else:
        yield


class _Calls(TorchFunctionMode):  # type: ignore[misc]  # untyped in PyTorch
    """The calls of attention in a forward pass: all functions of PyTorch pass through here.

    Attributes:
        maps: The weights by the names of the modules that called.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maps: dict[str, Array] = {}
        self.by_hand = SoftmaxTrace()
        self.counts: Counter[str] = Counter()
        self.running: list[tuple[str, nn.Module]] = []  # from the outermost module to the innermost one
        self.entered: dict[str, nn.Module] = {}  # the attention modules that ran
        self.unseen = ExitStack()  # open while an nn.MultiheadAttention computes

    def watch(self, name: str, part: nn.Module) -> Iterator[Any]:
        """Register the hooks of a part of the module, and yield them."""

        def enter(part: nn.Module, args: Any) -> None:
            self.running.append((name, part))
            if isinstance(part, nn.MultiheadAttention):
                self.entered[name] = part
            if _is_plain(part):  # it takes its fast path as long as nobody watches the functions
                self.unseen.enter_context(torch._C.DisableTorchFunction())

        def leave(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            if _is_plain(part):
                self.unseen.close()
                call = SIGNATURE.bind(part, *args, **kwargs).arguments
                masks = call.get("key_padding_mask"), call.get("attn_mask")
                query: Tensor = call["query"]
                with torch.autocast(query.device.type, enabled=False):
                    self.add(_weights(cast(nn.MultiheadAttention, part), query, call["key"], *masks))
            self.running.pop()

        yield part.register_forward_pre_hook(enter)
        yield part.register_forward_hook(leave, with_kwargs=True)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of PyTorch, and add its weights if it is an attention."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is nn.functional.scaled_dot_product_attention:
            with torch.autocast(args[0].device.type if args else "cpu", enabled=False):
                self.add(_dot_product_weights(self._place, *args, **kwargs))
        elif func is nn.functional.multi_head_attention_forward:
            again = {**kwargs, "need_weights": True, "average_attn_weights": False, "training": False}
            _, weights = func(*args, **again)
            self.add(weights if weights.dim() == 4 else weights[None])
        elif any(part in name for part in UNREADABLE):
            raise UserError(
                f"{self._place} computes its attention by {name}, beside which there are no weights: use "
                "scaled_dot_product_attention (in transformers, attn_implementation='sdpa')"
            )
        result = func(*args, **kwargs)
        own = self.by_hand.weights_of(func, args, kwargs, result)
        if own is not None:
            self.add(_with_four_axes(own))
        return result

    @property
    def _place(self) -> str:
        """The noun for the innermost module that runs."""
        name, part = self.running[-1]
        return f"{name!r}, a {type(part).__name__}," if name else f"this {type(part).__name__}"

    def add(self, weights: Tensor) -> None:
        """Add the weights of a call (B, H, T, S) under the name of the innermost module."""
        name = self.running[-1][0]
        self.counts[name] += 1
        count = self.counts[name]
        self.maps[name if count == 1 else f"{name}#{count}"] = weights.cpu().numpy()

    def require_all(self, module: nn.Module) -> None:
        """Refuse a module without attention, or with an attention module whose weights were not found."""
        for name, part in self.entered.items():
            begin = (f"{name}.", f"{name}#") if name else ""  # layers.10 does not stand for layers.1
            if not any(found == name or found.startswith(begin) for found in self.maps):
                raise UserError(
                    f"the attention module {name!r} is a {type(part).__name__} with a forward of its own, "
                    "in which no attention was found: use nn.MultiheadAttention"
                )
        if not self.maps:
            raise UserError(
                f"the forward pass of this {type(module).__name__} called no attention of PyTorch, and "
                "multiplied no values by a softmax: give a module and inputs with which it does (in "
                "transformers, attn_implementation='sdpa')"
            )


def _is_plain(part: nn.Module) -> bool:
    """Return whether a module is an nn.MultiheadAttention that computes what this class computes."""
    return isinstance(part, nn.MultiheadAttention) and type(part).forward is nn.MultiheadAttention.forward


def _dot_product_weights(
    place: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(q kᵀ scale + mask) of a call of scaled_dot_product_attention, of shape (B, H, T, S)."""
    if query.is_nested or type(attn_mask) not in (Tensor, nn.Parameter, type(None)):
        raise UserError(
            f"{place} calls scaled_dot_product_attention with nested tensors or with a mask of a class of "
            "its own: give padded sentences and a mask that is a tensor"
        )
    dtype = torch.promote_types(query.dtype, torch.float32)
    query, key = query.to(dtype), key.to(dtype)
    if enable_gqa:  # the query heads h R .. h R + R - 1 share the key head h
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    if attn_mask is not None:  # here True means that the query may attend
        is_bool = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if is_bool else scores + attn_mask
    return _with_four_axes(_softmax(scores))


def _with_four_axes(weights: Tensor) -> Tensor:
    """Return weights (..., T, S) as (B, H, T, S). Three axes have no heads, and five or more further ones."""
    if weights.dim() == 3:
        return weights[:, None]
    shape = (1,) * (4 - weights.dim()) + tuple(weights.shape)
    return weights.reshape(-1, *shape[-3:])  # further axes before the heads become one


def _softmax(scores: Tensor) -> Tensor:
    """Return the weights of scores, 0 in rows in which all scores are -inf."""
    is_blocked = (scores == -math.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(is_blocked, 0)


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
    return _softmax(scores)


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
