"""The measurements of the mask lab: one attention layer under masks, and the outputs that a token changes."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.checking.leaks import movement
from npformer.errors import UserError
from npformer.functional.masks import causal_mask, local_mask, mask_from_embeddings, padding_mask
from npformer.models.transformer import (
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    SequenceDecoderLayer,
    SequenceEncoderLayer,
    Transformer,
)

MISTAKES = {
    "shifted": "the causal mask allows each position to attend to the next one too (needs --causal)",
    "no-padding": "the padding mask is left out (needs --pad)",
    "from-embeddings": "the padding mask is made from embeddings, sum != 0, and not from ids (needs --pad)",
}


class TokenSequence(NamedTuple):
    """A sentence as a model reads it: tokens and their ids."""

    tokens: list[str]
    ids: Array  # (1, S)

    def padded(self, count: int) -> "TokenSequence":
        """Return the tokens with padding at the end."""
        return TokenSequence([*self.tokens, *["<PAD>"] * count], np.pad(self.ids, ((0, 0), (0, count))))


@dataclass(frozen=True)
class Seen:
    """One head of an attention layer under masks, from a forward pass.

    Shapes: masks, mask, scores, weights, moved and allowed (T, S), for T queries and S keys.
    """

    queries: list[str]
    keys: list[str]
    masks: Mapping[str, Array]  # each correct mask by its name
    mask: Array  # the mask of the forward pass: all of them combined, or with a mistake
    scores: Array  # before mask and softmax
    weights: Array
    moved: Array  # the change of output t when token s changes
    allowed: Array  # True where the masks allow that change
    where: str  # "untrained, encoder layer 0, head 0"

    @property
    def leaks(self) -> Array:
        """The pairs (output, token) that leak, an array of shape (N, 2)."""
        return np.argwhere((self.moved > 0) & ~self.allowed)

    @property
    def hidden(self) -> list[str]:
        """The words that some query may attend to but that the mask of the forward pass hides from it."""
        right = together(self.masks, *self.mask.shape)
        return [self.keys[i] for i in np.flatnonzero((right & ~self.mask).any(0))]


class Attention(NamedTuple):
    """An attention layer with its input."""

    name: str
    x: Array  # (1, S, D) the vectors of the tokens that are changed
    forward: Callable[[Any, Any], tuple[Any, Any]]  # (x, mask) -> (y, cache) of the attention


@dataclass(frozen=True)
class MaskLab:
    """A model, T queries, S keys, and the arguments of the command.

    Attributes:
        model: The model.
        queries: The tokens of the queries.
        keys: The tokens of the keys, with padding.
        arguments: The arguments of the command, with the masks, the layer and the head.
    """

    model: Transformer
    queries: TokenSequence
    keys: TokenSequence
    arguments: Namespace

    def attend(self) -> Seen:
        """Run one head under the masks of the arguments, and find which token changes which output.

        Raises:
            UserError: If the model has no such layer or head.
        """
        arguments, config = self.arguments, self.model.config
        for what, count in (("layer", config.n_layers), ("head", config.n_heads)):
            index = getattr(arguments, what)
            if not 0 <= index < count:
                raise UserError(f"--{what} is {index}, and the model has {count}: give 0 to {count - 1}")
        cross, masks = arguments.cross is not None, self.masks()
        right = together(masks, len(self.queries.tokens), len(self.keys.tokens))
        attention = self.cross_attention() if cross else self.self_attention(right)

        def used(x: Array) -> Array:
            """Return the mask of the forward pass, with the mistake if one was asked for."""
            return together(with_mistake(masks, arguments.mistake, x), *right.shape)

        _, cache = attention.forward(attention.x, used(attention.x))
        mistake = f", mistake: {arguments.mistake}" if arguments.mistake else ""
        place = f"{attention.name} layer {arguments.layer}, head {arguments.head}"
        return Seen(
            queries=self.queries.tokens,
            keys=self.keys.tokens,
            masks=masks,
            mask=used(attention.x),
            scores=cache.attention.scores[0, arguments.head],
            weights=cache.attention.weights[0, arguments.head],
            moved=movement(lambda x: attention.forward(x, used(x)), attention.x),
            # within a sentence a padding word is a query too, and its output moves with itself
            allowed=right if cross else right | np.eye(len(right), dtype=bool),
            where=f"{arguments.model or 'untrained'}, {place}{mistake}",
        )

    def masks(self) -> dict[str, Array]:
        """Return the masks that the arguments ask for, each (T, S), by their names."""
        ids, n_keys = self.keys.ids, len(self.keys.tokens)
        masks = {}
        if self.arguments.pad:
            padding = padding_mask(ids)[0, 0]
            masks["padding"] = np.broadcast_to(padding, (len(self.queries.tokens), n_keys))
        if self.arguments.causal:
            masks["causal"] = causal_mask(n_keys, ids)
        if (window := self.arguments.window) is not None:
            masks[f"window {window}"] = local_mask(n_keys, window, ids)
        return masks

    def self_attention(self, mask: Array) -> Attention:
        """Return the decoder's self-attention under a causal mask, or else the encoder's.

        The layers below have the mask (S, S).

        Raises:
            UserError: If a decoder layer above the first is asked for, because it needs a source sentence.
        """
        model, index, causal = self.model, self.arguments.layer, self.arguments.causal
        stack, embedding = (model.decoder, model.target) if causal else (model.encoder, model.source)
        x, _ = embedding.forward(self.keys.ids)  # (1, S, D)
        if causal and index > 0:
            raise UserError(f"layer {index} of the decoder needs a source sentence: --causal takes --layer 0")
        for below in stack.layers[:index]:
            x, _ = below.forward(x, mask)
        layer = stack[index]

        def forward(x: Array, mask: Array) -> tuple[Array, Any]:
            return layer.self_attention.forward(attention_input(layer, x), mask=mask)

        return Attention("decoder" if causal else "encoder", x, forward)

    def cross_attention(self) -> Attention:
        """Return the encoder-decoder attention of a decoder layer. Its input is the encoder's output."""
        model, keys, ids = self.model, self.keys.ids, self.queries.ids
        padding, causal = padding_mask(keys), causal_mask(ids.shape[1], ids)
        x, _ = model.source.forward(keys)
        memory, _ = model.encoder.forward(x, padding)  # (1, S, D)
        x, _ = model.target.forward(ids)  # (1, T, D)
        for below in model.decoder.layers[: self.arguments.layer]:
            x, _ = below.forward(x, memory, causal, padding)
        layer = model.decoder[self.arguments.layer]
        _, cache = layer.forward(x, memory, causal, padding)
        queries = cache.cross.projections[0].x  # (1, T, D) what the cross-attention reads of the decoder

        def forward(memory: Array, mask: Array) -> tuple[Array, Any]:
            return layer.cross.forward(queries, memory, mask=mask)

        return Attention("cross-attention of decoder", memory, forward)


def attention_input(layer: Any, x: Array) -> Array:
    """Return what the self-attention of a layer reads: x, after the norm if there is one before it.

    Shapes: x (1, S, D) -> (1, S, D).
    """
    if isinstance(layer, PreNormEncoderLayer | PreNormDecoderLayer):
        return layer.norm1(x)
    if isinstance(layer, SequenceEncoderLayer | SequenceDecoderLayer):
        return layer.preprocess1(x)
    return x


def with_mistake(masks: Mapping[str, Array], mistake: str | None, x: Array) -> dict[str, Array]:
    """Return the masks with a well-known mistake in one of them.

    Args:
        masks: The correct masks by name.
        mistake: One of MISTAKES, or None.
        x: (1, S, D) the input of the attention layer.
    """
    masks = dict(masks)
    if mistake == "shifted":
        masks["causal"] = np.tri(len(masks["causal"]), k=1, dtype=bool)
    elif mistake == "no-padding":
        del masks["padding"]
    elif mistake == "from-embeddings":
        masks["padding"] = np.broadcast_to(mask_from_embeddings(x)[0, 0], masks["padding"].shape)
    return masks


def together(masks: Mapping[str, Array], *shape: int) -> Array:
    """Return the logical and of all masks, bool (T, S). The shape is that of the result."""
    return np.logical_and.reduce([np.ones(shape, bool), *masks.values()])
