"""to_torch: PyTorch modules with the weights of layers of npformer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from npformer.backend import to_numpy
from npformer.errors import UserError
from npformer.interop.torch.activations import FUNCTIONS
from npformer.models.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    SequenceDecoderLayer,
    SequenceEncoderLayer,
)
from npformer.nn import (
    AddNorm,
    FeedForward,
    LayerNorm,
    Linear,
    Module,
    MultiHeadAttention,
    Parameter,
)
from npformer.nn.attention import TutorialAttention

EMPTY = "meta"  # the device of a new module, whose tensors are then set: no memory, no random numbers
ENCODER_LAYERS = (EncoderLayer, PreNormEncoderLayer, SequenceEncoderLayer)
DECODER_LAYERS = (DecoderLayer, PreNormDecoderLayer, SequenceDecoderLayer)
NO_LAYER: Any = nn.Identity()  # the layer of a new stack, which copies it 0 times


def to_torch(model: Module, *, batch_first: bool = True) -> nn.Module:
    """Return a PyTorch module that computes the same function as a layer of npformer.

    The module has copies of the weights. Its class is that of the table in from_torch, and
    to_torch(from_torch(module)) has the same weights as the module, bit for bit if their dtype was kept. The
    module is in training mode, as every new module of PyTorch is.

    Args:
        model: The layer: a MultiHeadAttention, a layer of an encoder or a decoder, an Encoder, Decoder,
            EncoderDecoder, Linear or LayerNorm. Parameters that it uses in several places are shared by the
            modules too.
        batch_first: The setting of this name of the module. True for arrays (B, T, D), as in npformer, and
            False for (T, B, D).

    Returns:
        The module.

    Raises:
        UserError: If a class or an option has no counterpart in PyTorch. The message names the part.
    """
    return _Builder(model, batch_first).build(model)


class _Norm(NamedTuple):
    """The norm of a sublayer, and the dropout probability of its output."""

    layer: Any  # a LayerNorm or an AddNorm
    dropout: float


class _Builder:
    """The construction of one module, which knows the names of the layers and the shared parameters."""

    def __init__(self, root: Module, batch_first: bool) -> None:
        named = root.named_modules() if isinstance(root, Module) else ()
        self.names = {id(layer): name for name, layer in named}
        self.batch_first = batch_first
        self.tensors: dict[tuple[int, ...], nn.Parameter] = {}

    def build(self, layer: Module) -> nn.Module:
        """Return the module of a layer of any class that to_torch converts."""
        builders: dict[type, Callable[[Any], nn.Module]] = {
            MultiHeadAttention: self.attention,
            **dict.fromkeys((*ENCODER_LAYERS, *DECODER_LAYERS), self.layer),
            **dict.fromkeys((Encoder, Decoder), self.stack),
            EncoderDecoder: self.transformer,
            LayerNorm: self.norm,
            Linear: self.linear,
        }
        self.require(layer, *builders)
        return builders[type(layer)](layer)

    def require(self, layer: Any, *classes: type) -> None:
        """Check that a layer is of one of these classes.

        Raises:
            UserError: If it is of another class, or of a subclass.
        """
        if type(layer) not in classes:
            wanted = ", ".join(c.__name__ for c in classes)
            self.refuse(layer, f"is of class {type(layer).__name__}: to_torch converts {wanted} here")

    def refuse(self, layer: Any, what: str) -> NoReturn:
        """Raise a UserError that names the layer."""
        name = self.names.get(id(layer), "")
        raise UserError(f"{f'the part {name}' if name else 'the layer'} {what}")

    def parameter(self, *parameters: Parameter) -> nn.Parameter:
        """Return the tensor of a parameter, or of several, side by side in one tensor.

        A matrix is transposed, since PyTorch's weights are (out, in). Parameters that occur twice give one
        tensor.
        """
        key = tuple(map(id, parameters))
        if key not in self.tensors:
            rows = np.concatenate([to_numpy(parameter.value).T for parameter in parameters])
            self.tensors[key] = nn.Parameter(torch.from_numpy(np.ascontiguousarray(rows)))
        return self.tensors[key]

    def linear(self, layer: Any, kind: Any = nn.Linear) -> Any:
        """Return an nn.Linear, or a module of a subclass."""
        self.require(layer, Linear)
        module = kind(*layer.weight.shape, bias=layer.bias is not None, device=EMPTY)
        module.weight = self.parameter(layer.weight)
        if layer.bias is not None:
            module.bias = self.parameter(layer.bias)
        return module

    def norm(self, layer: Any) -> nn.LayerNorm:
        """Return an nn.LayerNorm."""
        self.require(layer, LayerNorm, AddNorm)
        module = nn.LayerNorm(layer.gain.shape, eps=layer.eps, bias=layer.bias is not None, device=EMPTY)
        module.weight = self.parameter(layer.gain)
        if layer.bias is not None:
            module.bias = self.parameter(layer.bias)
        return module

    def attention(self, layer: MultiHeadAttention) -> nn.MultiheadAttention:
        """Return an nn.MultiheadAttention."""
        self.require(layer, MultiHeadAttention, TutorialAttention)
        for is_unsupported, what in _without_counterpart(layer):
            if is_unsupported:
                self.refuse(layer, f"{what}, which nn.MultiheadAttention cannot do: change that setting")
        projections: list[Any] = layer.projections
        d_model, kdim, vdim = layer.d_inputs
        module = nn.MultiheadAttention(
            d_model,
            layer.n_heads,
            dropout=layer.dropout,
            bias=projections[0].bias is not None,
            kdim=kdim,
            vdim=vdim,
            batch_first=self.batch_first,
            device=EMPTY,
        )
        weights = [projection.weight for projection in projections]
        if d_model == kdim == vdim:
            module.in_proj_weight = self.parameter(*weights)
        else:
            module.q_proj_weight, module.k_proj_weight, module.v_proj_weight = map(self.parameter, weights)
        if projections[0].bias is not None:
            module.in_proj_bias = self.parameter(*(projection.bias for projection in projections))
        module.out_proj = self.linear(layer.output, NonDynamicallyQuantizableLinear)
        return module

    def norms(self, layer: Any, count: int) -> tuple[list[_Norm], bool]:
        """Return the norm of each sublayer of an encoder or decoder layer, and True if the norms come first.

        Args:
            layer: The layer.
            count: The number of its sublayers.

        Raises:
            UserError: If its operations are not those of PyTorch's pre-norm or post-norm.
        """
        numbers = range(1, count + 1)
        if isinstance(layer, EncoderLayer | DecoderLayer):
            norms = [getattr(layer, f"norm{n}") for n in numbers]
            return [_Norm(norm, norm.dropout) for norm in norms], False
        if isinstance(layer, PreNormEncoderLayer | PreNormDecoderLayer):
            return [_Norm(getattr(layer, f"norm{n}"), getattr(layer, f"dropout{n}").p) for n in numbers], True
        before = [getattr(layer, f"preprocess{n}").norm for n in numbers]
        after = [getattr(layer, f"postprocess{n}") for n in numbers]
        norm_first = before[0] is not None
        if after[0].letters != ("da" if norm_first else "dan"):
            self.refuse(layer, "computes another sequence than n-da or -dan, which are those of PyTorch")
        norms = before if norm_first else [each.norm for each in after]
        return [_Norm(norm, each.dropout.p) for norm, each in zip(norms, after, strict=True)], norm_first

    def layer(self, layer: Any, *classes: type) -> Any:
        """Return an nn.TransformerEncoderLayer or an nn.TransformerDecoderLayer."""
        self.require(layer, *(classes or (*ENCODER_LAYERS, *DECODER_LAYERS)))
        is_encoder = isinstance(layer, ENCODER_LAYERS)
        kind: Any = nn.TransformerEncoderLayer if is_encoder else nn.TransformerDecoderLayer
        attention = self.attention(layer.self_attention)
        norms, norm_first = self.norms(layer, 2 if is_encoder else 3)
        network = layer.feed_forward
        self.require(network, FeedForward)
        if network.activation not in FUNCTIONS:
            self.refuse(
                network, f"has the activation {network.activation!r}: to_torch knows {', '.join(FUNCTIONS)}"
            )
        module = kind(
            attention.embed_dim,
            attention.num_heads,
            network.inner.weight.shape[1],
            activation=FUNCTIONS[network.activation],
            batch_first=self.batch_first,
            norm_first=norm_first,
            device=EMPTY,
        )
        module.self_attn = attention
        module.linear1, module.linear2 = self.linear(network.inner), self.linear(network.outer)
        module.dropout.p = network.dropout
        for number, norm in enumerate(norms, start=1):
            setattr(module, f"norm{number}", self.norm(norm.layer))
            getattr(module, f"dropout{number}").p = norm.dropout
        if not is_encoder:
            module.multihead_attn = self.attention(layer.cross)
        return module

    def stack(self, stack: Any, *classes: type) -> Any:
        """Return an nn.TransformerEncoder, which computes padding too, as npformer does, or a decoder."""
        self.require(stack, *(classes or (Encoder, Decoder)))
        if not stack.layers:
            self.refuse(stack, "has no layers, and PyTorch cannot run such a stack: add a layer")
        module: Any = nn.TransformerDecoder(NO_LAYER, 0)
        layer_classes: tuple[type, ...] = DECODER_LAYERS
        if isinstance(stack, Encoder):
            module = nn.TransformerEncoder(NO_LAYER, 0, enable_nested_tensor=False)
            layer_classes = ENCODER_LAYERS
        module.layers = nn.ModuleList([self.layer(each, *layer_classes) for each in stack.layers])
        module.num_layers = len(stack.layers)
        module.norm = None if stack.norm is None else self.norm(stack.norm)
        return module

    def transformer(self, model: EncoderDecoder) -> nn.Transformer:
        """Return an nn.Transformer."""
        self.require(model, EncoderDecoder)
        encoder, decoder = self.stack(model.encoder, Encoder), self.stack(model.decoder, Decoder)
        module = nn.Transformer(
            decoder.layers[0].self_attn.embed_dim,
            decoder.layers[0].self_attn.num_heads,
            custom_encoder=nn.Identity(),  # the constructor would draw the weights of the encoder anew
            custom_decoder=nn.Identity(),
            batch_first=self.batch_first,
        )
        module.encoder, module.decoder = encoder, decoder
        return module


def _without_counterpart(layer: MultiHeadAttention) -> Iterator[tuple[bool, str]]:
    """Yield pairs (condition, description) of the options that nn.MultiheadAttention does not have."""
    d_model, _, _ = layer.d_inputs
    yield layer.n_kv_heads != layer.n_heads, "shares keys and values among heads"
    yield layer.d_head * layer.n_heads != d_model, "has heads of a width other than d_model / n_heads"
    yield layer.d_value != layer.d_head, "has values of another width than its keys"
    yield layer.output is None, "has no output matrix"
    yield layer.rotary is not None, "rotates queries and keys by their positions"
    yield layer.scale is not None, "does not divide its scores by sqrt(d_head)"
    yield isinstance(layer, TutorialAttention), "replaces masked scores by finite numbers, or adds them"
    yield layer.projections[0].activation != "none", "applies an activation to queries, keys and values"
