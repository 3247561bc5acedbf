"""The bench of the mask lab: one attention layer under masks, and what moves when a token changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.leaks import movement
from npformer.masks import causal_mask, local_mask, mask_from_embeddings, padding_mask
from npformer.transformer import Transformer

MISTAKES = {
    "shifted": "the causal mask lets each position see the next one too (needs --causal)",
    "no-padding": "the padding mask is left out (needs --pad)",
    "from-embeddings": "the padding mask is made from embeddings, sum != 0, and not from ids (needs --pad)",
}


class Words(NamedTuple):
    """A sentence as a model reads it."""

    words: list[str]
    ids: np.ndarray  # (1, S)

    def padded(self, count: int) -> "Words":
        """The same with padding at the end."""
        return Words([*self.words, *["<PAD>"] * count], np.pad(self.ids, ((0, 0), (0, count))))


@dataclass(frozen=True)
class Seen:
    """One head of an attention layer under masks, from a real forward pass.

    Shapes: masks, mask, scores, weights, moved and allowed (T, S), T queries and S keys.
    """

    queries: list[str]
    keys: list[str]
    masks: Mapping[str, np.ndarray]  # each mask by its name, as it should be
    mask: np.ndarray  # that of the forward pass: all of them together, unless there is a mistake in it
    scores: np.ndarray  # before mask and softmax
    weights: np.ndarray
    moved: np.ndarray  # how far output t moves when token s changes
    allowed: np.ndarray  # whether it may
    where: str  # "untrained, encoder layer 0, head 0"

    @property
    def leaks(self) -> np.ndarray:
        """The pairs (output, token) that leak. Shapes: -> (N, 2)."""
        return np.argwhere((self.moved > 0) & ~self.allowed)

    @property
    def hidden(self) -> list[str]:
        """Words that some query should see, and that the mask of the forward pass hides from it."""
        right = together(self.masks, *self.mask.shape)
        return [word for word, wrong in zip(self.keys, (right & ~self.mask).any(0), strict=True) if wrong]


class Bench(NamedTuple):
    """An attention layer with what goes into it."""

    name: str
    x: np.ndarray  # (1, S, D) the vectors of the tokens that are changed
    forward: Callable[[Any, Any], tuple[Any, Any]]  # (x, mask) -> (y, cache) of the attention


def look(model: Transformer, queries: Words, keys: Words, arguments) -> Seen:
    """One head under the masks that the arguments ask for, and which outputs move with which tokens.

    Errors: UserError for a layer or head that the model does not have.
    """
    layer, head, cross = arguments.layer, arguments.head, arguments.cross is not None
    within(layer, model.config.n_layers, "layer")
    within(head, model.config.n_heads, "head")
    masks = make_masks(arguments, len(queries.words), keys)
    right = together(masks, len(queries.words), len(keys.words))
    bench = cross_bench(model, layer, queries, keys) if cross else self_bench(model, arguments, keys, right)

    def used(x) -> np.ndarray:
        """The mask of the forward pass, with its mistake if there is to be one."""
        return together(with_mistake(masks, arguments.mistake, x), *right.shape)

    _, cache = bench.forward(bench.x, used(bench.x))
    return Seen(
        queries=queries.words,
        keys=keys.words,
        masks=masks,
        mask=used(bench.x),
        scores=cache.attention.scores[0, head],
        weights=cache.attention.weights[0, head],
        moved=movement(lambda x: bench.forward(x, used(x)), bench.x),
        # within a sentence a padding word is a query too, and its output moves with itself
        allowed=right if cross else right | np.eye(len(right), dtype=bool),
        where=f"{arguments.run or 'untrained'}, {bench.name} layer {layer}, head {head}"
        + (f", mistake: {arguments.mistake}" if arguments.mistake else ""),
    )


def within(index: int, count: int, what: str) -> None:
    """Errors: UserError for a layer or head that is not there."""
    if not 0 <= index < count:
        raise UserError(f"--{what} is {index}, and the model has {count}: give 0 to {count - 1}")


def make_masks(arguments, n_queries: int, keys: Words) -> dict[str, np.ndarray]:
    """The masks that were asked for, each (T, S), by their names."""
    n_keys = len(keys.words)
    masks = {}
    if arguments.pad:
        masks["padding"] = np.broadcast_to(padding_mask(keys.ids)[0, 0], (n_queries, n_keys))
    if arguments.causal:
        masks["causal"] = causal_mask(n_keys, keys.ids)
    if arguments.window is not None:
        masks[f"window {arguments.window}"] = local_mask(n_keys, arguments.window, keys.ids)
    return masks


def with_mistake(masks: Mapping[str, np.ndarray], mistake: str | None, x) -> dict[str, np.ndarray]:
    """The masks with a well-known mistake in one of them. Shapes: x (1, S, D), what attention looks at."""
    masks = dict(masks)
    if mistake == "shifted":
        masks["causal"] = np.tri(len(masks["causal"]), k=1, dtype=bool)
    elif mistake == "no-padding":
        del masks["padding"]
    elif mistake == "from-embeddings":
        masks["padding"] = np.broadcast_to(mask_from_embeddings(x)[0, 0], masks["padding"].shape)
    return masks


def together(masks: Mapping[str, np.ndarray], n_queries: int, n_keys: int) -> np.ndarray:
    """What all masks let pass. Shapes: -> bool (T, S)."""
    return np.logical_and.reduce([np.ones((n_queries, n_keys), bool), *masks.values()])


def self_bench(model: Transformer, arguments, words: Words, mask) -> Bench:
    """Self-attention: the decoder's under a causal mask, else the encoder's.

    Errors: UserError for a decoder layer above the first, which needs a source sentence.
    """
    stack = model.decoder if arguments.causal else model.encoder
    embedding = model.target if arguments.causal else model.source
    x, _ = embedding.forward(words.ids)  # (1, S, D)
    if arguments.causal and arguments.layer > 0:
        raise UserError(
            f"layer {arguments.layer} of the decoder has looked at a source sentence before: --causal takes "
            "--layer 0"
        )
    for below in stack.layers[: arguments.layer]:
        x, _ = below.forward(x, mask)
    layer = stack[arguments.layer]

    def forward(x, mask):
        h, _ = layer.self_residual.enter(x)  # the norm, where it stands before attention
        return layer.self_attention.forward(h, mask=mask)

    return Bench("decoder" if arguments.causal else "encoder", x, forward)


def cross_bench(model: Transformer, index: int, queries: Words, keys: Words) -> Bench:
    """The encoder-decoder attention of a decoder layer: the tokens that change are the encoder's outputs."""
    padding, causal = padding_mask(keys.ids), causal_mask(len(queries.words), queries.ids)
    x, _ = model.source.forward(keys.ids)
    memory, _ = model.encoder.forward(x, padding)  # (1, S, D)
    x, _ = model.target.forward(queries.ids)  # (1, T, D)
    for below in model.decoder.layers[:index]:
        x, _ = below.forward(x, memory, causal, padding)
    layer = model.decoder[index]
    h, entered = layer.self_residual.enter(x)
    h, _ = layer.self_attention.forward(h, mask=causal)
    x, _ = layer.self_residual.join(x, h, entered)
    query, _ = layer.cross_residual.enter(x)

    def forward(memory, mask):
        return layer.cross.forward(query, memory, mask=mask)

    return Bench("cross-attention of decoder", memory, forward)
