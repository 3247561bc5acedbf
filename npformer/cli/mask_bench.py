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


class Bench(NamedTuple):
    """An attention layer with its input."""

    name: str
    x: Array  # (1, S, D) the vectors of the tokens that are changed
    forward: Callable[[Any, Any], tuple[Any, Any]]  # (x, mask) -> (y, cache) of the attention


def attend_under_masks(
    model: Transformer, queries: TokenSequence, keys: TokenSequence, arguments: Namespace
) -> Seen:
    """Run one head under the masks of the arguments, and find which token changes which output.

    Args:
        model: The model.
        queries: The tokens of the queries.
        keys: The tokens of the keys, with padding.
        arguments: The arguments of the command.

    Raises:
        UserError: If the model has no such layer or head.
    """
    layer, head, cross = arguments.layer, arguments.head, arguments.cross is not None
    within(layer, model.config.n_layers, "layer")
    within(head, model.config.n_heads, "head")
    masks = make_masks(arguments, len(queries.tokens), keys)
    right = together(masks, len(queries.tokens), len(keys.tokens))
    bench = cross_bench(model, layer, queries, keys) if cross else self_bench(model, arguments, keys, right)

    def used(x: Array) -> Array:
        """Return the mask of the forward pass, with the mistake if one was asked for."""
        return together(with_mistake(masks, arguments.mistake, x), *right.shape)

    _, cache = bench.forward(bench.x, used(bench.x))
    return Seen(
        queries=queries.tokens,
        keys=keys.tokens,
        masks=masks,
        mask=used(bench.x),
        scores=cache.attention.scores[0, head],
        weights=cache.attention.weights[0, head],
        moved=movement(lambda x: bench.forward(x, used(x)), bench.x),
        # within a sentence a padding word is a query too, and its output moves with itself
        allowed=right if cross else right | np.eye(len(right), dtype=bool),
        where=f"{arguments.model or 'untrained'}, {bench.name} layer {layer}, head {head}"
        + (f", mistake: {arguments.mistake}" if arguments.mistake else ""),
    )


def within(index: int, count: int, what: str) -> None:
    """Raise UserError for a layer or head that the model does not have.

    Args:
        index: The layer or head, counted from 0.
        count: The number of layers or heads.
        what: "layer" or "head", for the message.
    """
    if not 0 <= index < count:
        raise UserError(f"--{what} is {index}, and the model has {count}: give 0 to {count - 1}")


def make_masks(arguments: Namespace, n_queries: int, keys: TokenSequence) -> dict[str, Array]:
    """Return the masks that the arguments ask for, each (T, S), by their names.

    Args:
        arguments: The arguments of the command, with pad, causal and window.
        n_queries: The number of queries, T.
        keys: The S tokens of the keys, with padding.
    """
    n_keys = len(keys.tokens)
    masks = {}
    if arguments.pad:
        masks["padding"] = np.broadcast_to(padding_mask(keys.ids)[0, 0], (n_queries, n_keys))
    if arguments.causal:
        masks["causal"] = causal_mask(n_keys, keys.ids)
    if arguments.window is not None:
        masks[f"window {arguments.window}"] = local_mask(n_keys, arguments.window, keys.ids)
    return masks


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


def together(masks: Mapping[str, Array], n_queries: int, n_keys: int) -> Array:
    """Return the logical and of all masks, bool (T, S).

    Args:
        masks: The masks by name.
        n_queries: The number of queries, T.
        n_keys: The number of keys, S.
    """
    return np.logical_and.reduce([np.ones((n_queries, n_keys), bool), *masks.values()])


def self_bench(model: Transformer, arguments: Namespace, tokens: TokenSequence, mask: Array) -> Bench:
    """Return the decoder's self-attention under a causal mask, or else the encoder's.

    Args:
        model: The model.
        arguments: The arguments of the command, with causal and layer.
        tokens: The S tokens of the sentence.
        mask: (S, S) the mask of the layers below.

    Raises:
        UserError: If a decoder layer above the first is asked for, because it needs a source sentence.
    """
    stack = model.decoder if arguments.causal else model.encoder
    embedding = model.target if arguments.causal else model.source
    x, _ = embedding.forward(tokens.ids)  # (1, S, D)
    if arguments.causal and arguments.layer > 0:
        raise UserError(
            f"layer {arguments.layer} of the decoder needs a source sentence: --causal takes --layer 0"
        )
    for below in stack.layers[: arguments.layer]:
        x, _ = below.forward(x, mask)
    layer = stack[arguments.layer]

    def forward(x: Array, mask: Array) -> tuple[Array, Any]:
        return layer.self_attention.forward(attention_input(layer, x), mask=mask)

    return Bench("decoder" if arguments.causal else "encoder", x, forward)


def attention_input(layer: Any, x: Array) -> Array:
    """Return what the self-attention of a layer reads: x, after the norm if there is one before it.

    Shapes: x (1, S, D) -> (1, S, D).
    """
    if isinstance(layer, PreNormEncoderLayer | PreNormDecoderLayer):
        return layer.norm1(x)
    if isinstance(layer, SequenceEncoderLayer | SequenceDecoderLayer):
        return layer.preprocess1(x)
    return x


def cross_bench(model: Transformer, index: int, queries: TokenSequence, keys: TokenSequence) -> Bench:
    """Return the encoder-decoder attention of a decoder layer. Its input is the encoder's output.

    Args:
        model: The model.
        index: The decoder layer, counted from 0.
        queries: The tokens that the decoder reads.
        keys: The tokens that the encoder reads, with padding.
    """
    padding, causal = padding_mask(keys.ids), causal_mask(len(queries.tokens), queries.ids)
    x, _ = model.source.forward(keys.ids)
    memory, _ = model.encoder.forward(x, padding)  # (1, S, D)
    x, _ = model.target.forward(queries.ids)  # (1, T, D)
    for below in model.decoder.layers[:index]:
        x, _ = below.forward(x, memory, causal, padding)
    layer = model.decoder[index]
    _, cache = layer.forward(x, memory, causal, padding)
    queries = cache.cross.projections[0].x  # (1, T, D) what the cross-attention reads of the decoder

    def forward(memory: Array, mask: Array) -> tuple[Array, Any]:
        return layer.cross.forward(queries, memory, mask=mask)

    return Bench("cross-attention of decoder", memory, forward)
