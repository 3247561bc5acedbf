"""from_torch: layers of npformer with the weights of PyTorch modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from npformer.backend import Array
from npformer.errors import UserError
from npformer.interop.folder import checked_dtype
from npformer.interop.torch.activations import FUNCTIONS, name_of
from npformer.models.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
)
from npformer.models.transformer.layers import layer_from_parts
from npformer.nn import (
    AddNorm,
    Dropout,
    FeedForward,
    LayerNorm,
    Linear,
    Module,
    MultiHeadAttention,
    Parameter,
)

LINEAR = (nn.Linear, NonDynamicallyQuantizableLinear)  # the second one is the class of out_proj
# the classes of layers with the norm after each sublayer, and before it
LAYERS: dict[type, tuple[type[Module], type[Module]]] = {
    nn.TransformerEncoderLayer: (EncoderLayer, PreNormEncoderLayer),
    nn.TransformerDecoderLayer: (DecoderLayer, PreNormDecoderLayer),
}
# the classes of stacks, each with that of its layers
STACKS: dict[type, tuple[type[Module], type]] = {
    nn.TransformerEncoder: (Encoder, nn.TransformerEncoderLayer),
    nn.TransformerDecoder: (Decoder, nn.TransformerDecoderLayer),
}


def from_torch(module: nn.Module, *, dtype: Any = None) -> Module:
    """Return a layer of npformer that computes the same function as a module of PyTorch.

    The layer has copies of the weights. Its outputs and gradients are those of the module. The classes are

        nn.MultiheadAttention         MultiHeadAttention
        nn.TransformerEncoderLayer    EncoderLayer, or PreNormEncoderLayer with norm_first=True
        nn.TransformerDecoderLayer    DecoderLayer, or PreNormDecoderLayer with norm_first=True
        nn.TransformerEncoder         Encoder
        nn.TransformerDecoder         Decoder
        nn.Transformer                EncoderDecoder
        nn.Linear, nn.LayerNorm       Linear, LayerNorm

    A layer of npformer takes arrays (B, T, D), also if the module has batch_first=False. Its masks are bool,
    and True means that the query may attend to the key; in PyTorch, True means that it may not. The dropout
    probabilities are kept. Dropout acts in a forward pass with train=True, whatever the mode of the module.

    Args:
        module: The module. Tensors that it uses in several places are shared by the layers too.
        dtype: The dtype of the parameters. The default is that of each tensor, and float32 for tensors that
            NumPy has no dtype for, or only half precision.

    Returns:
        The layer.

    Raises:
        UserError: If a class or an option has no counterpart in npformer. The message names the part. Or if
            the dtype is neither float32 nor float64.
    """
    if not isinstance(module, nn.Module):
        raise UserError(
            f"from_torch takes a PyTorch module and got a {type(module).__name__}: give an nn.Module"
        )
    return _Converter(module, None if dtype is None else checked_dtype(dtype)).convert(module)


class _Converter:
    """The conversion of one module, which knows the names of its parts and the tensors that they share."""

    def __init__(self, root: nn.Module, dtype: Any) -> None:
        self.names = {id(module): name for name, module in root.named_modules()}
        self.dtype = dtype
        self.parameters: dict[tuple[int, int], Parameter] = {}
        if len({m.batch_first for m in root.modules() if isinstance(m, nn.MultiheadAttention)}) > 1:
            raise UserError(
                f"the parts of this {type(root).__name__} differ in batch_first: convert them one by one"
            )

    def convert(self, module: nn.Module) -> Any:
        """Return the layer of a module of any class that from_torch converts."""
        converters: dict[type, Callable[[Any], Module]] = {
            nn.MultiheadAttention: self.attention,
            **dict.fromkeys(LAYERS, self.layer),
            **dict.fromkeys(STACKS, self.stack),
            nn.Transformer: self.transformer,
            nn.LayerNorm: self.norm,
            **dict.fromkeys(LINEAR, self.linear),
        }
        self.require(module, *converters)
        return converters[type(module)](module)

    def require(self, module: Any, *classes: type) -> None:
        """Check that a module is of one of these classes, and that nothing changes its output.

        Raises:
            UserError: If it is of another class, or of a subclass.
        """
        if type(module) not in classes:
            parents = [f", a subclass of {c.__name__}" for c in classes if isinstance(module, c)]
            wanted = ", ".join(f"nn.{c.__name__}" for c in classes if hasattr(nn, c.__name__))
            raise UserError(
                f"{self.place(module)} is of class {type(module).__name__}{''.join(parents[:1])}, and "
                f"from_torch knows only what {wanted} compute: convert the parts that are of these classes"
            )
        if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
            raise UserError(
                f"{self.place(module)} has hooks or a forward of its own, which may change its output: "
                "remove them first"
            )

    def place(self, module: Any) -> str:
        """Return the name of a part for a message."""
        name = self.names.get(id(module), "")
        return f"the part {name}" if name else "the module"

    def array(self, tensor: torch.Tensor, module: nn.Module) -> Array:
        """Return a copy of a tensor as an array. A matrix is transposed: PyTorch's weights are (out, in).

        Raises:
            UserError: If the tensor has no values, or if they are no real floating-point numbers.
        """
        if tensor.is_meta or not tensor.is_floating_point():
            what = "on the device meta, without values" if tensor.is_meta else f"of dtype {tensor.dtype}"
            raise UserError(f"{self.place(module)} has a weight {what}: from_torch needs real numbers")
        if tensor.dtype not in (torch.float32, torch.float64):
            tensor = tensor.float()
        return np.array(tensor.detach().cpu().numpy().T, self.dtype, order="C")

    def parameter(self, tensor: torch.Tensor, module: nn.Module, part: int = 0, parts: int = 1) -> Parameter:
        """Return the parameter of a tensor, or of one of several equal parts of its first axis.

        A tensor that occurs twice gives one parameter.
        """
        key = id(tensor), part
        if key not in self.parameters:
            self.parameters[key] = Parameter(self.array(tensor.chunk(parts)[part], module))
        return self.parameters[key]

    def linear(self, module: nn.Linear) -> Linear:
        """Return a Linear."""
        self.require(module, *LINEAR)
        layer = Linear(module.in_features, module.out_features, bias=module.bias is not None)
        layer.weight = self.parameter(module.weight, module)
        if module.bias is not None:
            layer.bias = self.parameter(module.bias, module)
        return layer

    def norm(self, module: nn.LayerNorm) -> LayerNorm:
        """Return a LayerNorm."""
        self.require(module, nn.LayerNorm)
        if module.weight is None or len(module.normalized_shape) != 1:
            raise UserError(
                f"{self.place(module)} is a LayerNorm over {len(module.normalized_shape)} axes with "
                f"elementwise_affine={module.elementwise_affine}: from_torch converts those over one axis "
                "that have learned weights"
            )
        layer = LayerNorm(module.normalized_shape[0], eps=module.eps, bias=module.bias is not None)
        layer.gain = self.parameter(module.weight, module)
        if module.bias is not None:
            layer.bias = self.parameter(module.bias, module)
        return layer

    def attention(self, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """Return a MultiHeadAttention with separate projections of queries, keys and values."""
        self.require(module, nn.MultiheadAttention)
        if module.bias_k is not None or module.add_zero_attn:
            option = "add_zero_attn" if module.add_zero_attn else "add_bias_kv"
            raise UserError(
                f"{self.place(module)} has {option}=True, a key that is not a token, which npformer's "
                "attention does not have: make it without"
            )
        layer = MultiHeadAttention(
            module.embed_dim,
            module.num_heads,
            kdim=module.kdim,
            vdim=module.vdim,
            bias=module.in_proj_bias is not None,
            dropout=module.dropout,
        )
        separate = [module.q_proj_weight, module.k_proj_weight, module.v_proj_weight]
        for i, projection in enumerate([layer.query, layer.key, layer.value]):
            if module.in_proj_weight is None:
                projection.weight = self.parameter(separate[i], module)
            else:
                projection.weight = self.parameter(module.in_proj_weight, module, i, 3)
            if module.in_proj_bias is not None:
                projection.bias = self.parameter(module.in_proj_bias, module, i, 3)
        layer.output = self.linear(module.out_proj)
        return layer

    def feed_forward(self, module: Any) -> FeedForward:
        """Return the feed-forward network of an encoder or decoder layer."""
        activation = name_of(module.activation)
        if activation is None:
            raise UserError(
                f"{self.place(module)} has an activation that npformer does not know, {module.activation!r}: "
                f"it has {', '.join(FUNCTIONS)}"
            )
        inner, outer = self.linear(module.linear1), self.linear(module.linear2)
        layer = FeedForward(
            *inner.weight.shape, activation=activation, dropout=self.probability(module.dropout)
        )
        layer.inner, layer.outer = inner, outer
        return layer

    def add_norm(self, norm: nn.LayerNorm, dropout: nn.Dropout) -> AddNorm:
        """Return the "add & norm" of a sublayer, from its norm and its dropout."""
        own = self.norm(norm)
        d_model = len(own.gain.value)
        layer = AddNorm(d_model, dropout=self.probability(dropout), eps=own.eps, bias=own.bias is not None)
        layer.gain, layer.bias = own.gain, own.bias
        return layer

    def norms(self, module: Any, number: int) -> dict[str, Module]:
        """Return the norm of a sublayer and, if the norm comes first, its dropout, by their names in a layer.

        Args:
            module: The encoder or decoder layer.
            number: The number of the sublayer, from 1.
        """
        norm, dropout = getattr(module, f"norm{number}"), getattr(module, f"dropout{number}")
        if not module.norm_first:
            return {f"norm{number}": self.add_norm(norm, dropout)}
        return {f"norm{number}": self.norm(norm), f"dropout{number}": Dropout(self.probability(dropout))}

    def probability(self, dropout: nn.Dropout) -> float:
        """Return the probability of a dropout."""
        self.require(dropout, nn.Dropout)
        return dropout.p

    def layer(self, module: Any, *classes: type) -> Module:
        """Return the encoder or decoder layer of the class that has its norms in the same places."""
        self.require(module, *(classes or LAYERS))
        cross = {}
        if isinstance(module, nn.TransformerDecoderLayer):
            cross = {"cross": self.attention(module.multihead_attn), **self.norms(module, 2)}
        return layer_from_parts(
            LAYERS[type(module)][module.norm_first],
            self_attention=self.attention(module.self_attn),
            **self.norms(module, 1),
            **cross,
            feed_forward=self.feed_forward(module),
            **self.norms(module, 3 if cross else 2),
        )

    def stack(self, module: Any, *classes: type) -> Any:
        """Return an Encoder or a Decoder."""
        self.require(module, *(classes or STACKS))
        kind, layer = STACKS[type(module)]
        layers = [self.layer(each, layer) for each in module.layers]
        norm = None if module.norm is None else self.norm(module.norm)
        return layer_from_parts(kind, layers=layers, norm=norm)

    def transformer(self, module: nn.Transformer) -> EncoderDecoder:
        """Return an EncoderDecoder."""
        self.require(module, nn.Transformer)
        encoder = self.stack(module.encoder, nn.TransformerEncoder)
        return EncoderDecoder(encoder, self.stack(module.decoder, nn.TransformerDecoder))
