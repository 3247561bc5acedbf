"""ViT, a vision Transformer: a BERT of patches of an image, with the norm before each sublayer.

    x = dropout([class vector; patches weight + bias] + positions)
    x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    logits = norm(x_0) weight' + bias'

The first of the N + 1 vectors stands for no patch: it is learned, and the class of the image is read from it
after the last layer. The layers are those of the Transformer (`norm="pre"`). Every patch attends to all
others, and there is no padding: all images have the size that the model was trained for.

Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, like
from npformer.errors import Registry, UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache
from npformer.functional.patches import PatchEmbeddingCache, patch_embedding, patch_embedding_backward
from npformer.models.settings import ModelSettings, registry
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.stacks import Encoder, StackCache
from npformer.nn import Dropout, Linear
from npformer.nn.context import INFERENCE, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Module, Parameter
from npformer.validation import require_count

INITIAL_STD = 0.02  # the standard deviation of the initial vectors


@dataclass(frozen=True)
class ViTConfig(ModelSettings):
    """The settings of a ViT. The defaults are those of ViT-Base with patches of 16 × 16 pixels.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    reads: ClassVar[str] = "images"
    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of ViT", {})

    image_size: tuple[int, int] = (224, 224)  # height and width, in pixels
    patch_size: tuple[int, int] = (16, 16)
    n_colours: int = 3
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    d_ff: int = 3072
    activation: str = "gelu"
    norm_eps: float = 1e-12
    n_classes: int = 0  # 0 for a model without a head, whose output is that of the last norm
    dropout: float = 0.0
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        counts = ("n_colours", "d_model", "n_layers", "n_heads", "d_ff")
        self.require(
            choices={"activation": tuple(ACTIVATIONS)},
            counts=counts,
            indices=("n_classes",),
            shares=("dropout", "attention_dropout"),
            positive=("norm_eps",),
        )
        for name in ("image_size", "patch_size"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a list in a checkpoint
            for size in getattr(self, name):
                require_count(name, size)
        if self.d_model % self.n_heads:
            raise UserError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: change one of them"
            )
        if any(pixels % patch for pixels, patch in zip(self.image_size, self.patch_size, strict=True)):
            raise UserError(
                f"images of {self.image_size} pixels cannot be cut into patches of {self.patch_size}: give a "
                "patch_size that divides image_size"
            )

    @property
    def grid(self) -> tuple[int, int]:
        """The number of patches in a column and in a row of an image."""
        return self.image_size[0] // self.patch_size[0], self.image_size[1] // self.patch_size[1]

    @property
    def max_length(self) -> int:
        """The number of vectors, N + 1."""
        return self.grid[0] * self.grid[1] + 1

    @property
    def encoder(self) -> TransformerConfig:
        """The settings of the encoder layers."""
        return TransformerConfig(
            d_model=self.d_model,
            d_ff=self.d_ff,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            norm="pre",
            final_norm=True,
            norm_eps=self.norm_eps,
            activation=self.activation,
            positions="none",  # ViTEmbedding adds them
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            fused_projections=True,
        )

    @property
    def least_parameters(self) -> int:
        """A number of parameters that the model has at least, without building it."""
        kernel = self.n_colours * self.patch_size[0] * self.patch_size[1]
        layer = 4 * self.d_model + 2 * self.d_ff
        return self.d_model * (kernel + self.max_length + self.n_layers * layer + self.n_classes)


@cache_class
class ViTEmbeddingCache(NamedTuple):
    """The cache of ViTEmbedding."""

    patches: PatchEmbeddingCache
    dropout_mask: DropoutCache  # (B, N + 1, D), or None


class ViTEmbedding(Module):
    """The input of a ViT: y = dropout([class vector; patches weight + bias] + positions).

    Shapes: images (B, C, Y, X) -> y (B, N + 1, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Dosovitskiy et al. 2021, equation 1.
    """

    def __init__(
        self, config: ViTConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng, d = default_rng(rng), config.d_model
        kernel = (d, config.n_colours, *config.patch_size)
        self.weight = Parameter(normal(rng, kernel, INITIAL_STD, dtype))
        self.bias = Parameter(np.zeros(d, dtype))
        self.class_vector = Parameter(normal(rng, (1, 1, d), INITIAL_STD, dtype))
        self.positions = Parameter(normal(rng, (1, config.max_length, d), INITIAL_STD, dtype))
        self.dropout = Dropout(config.dropout)

    def forward(self, images: Array, context: Context = INFERENCE) -> tuple[Array, ViTEmbeddingCache]:
        """Return y, of shape (B, N + 1, D), and the cache."""
        xp = array_module(images)
        x, patches_cache = patch_embedding(images, self.weight.value, self.bias.value)  # (B, N, D)
        first = xp.broadcast_to(self.class_vector.value, (len(x), 1, x.shape[-1]))
        x = xp.concatenate([first, x], 1) + self.positions.value  # (B, N + 1, D)
        y, dropout_mask = self.dropout.forward(x, context)
        return y, ViTEmbeddingCache(patches_cache, dropout_mask)

    def backward(self, dy: Array, cache: ViTEmbeddingCache) -> Array:
        """Return dimages, of shape (B, C, Y, X)."""
        # y = dropout(x), x = [class vector; patches] + positions: all images share vector and positions
        dx = self.dropout.backward(dy, cache.dropout_mask)
        total = dx.sum(0, keepdims=True)  # (1, N + 1, D)
        self.positions.accumulate(total)
        self.class_vector.accumulate(total[:, :1])
        # patches = patch_embedding(images)
        dimages, dweight, dbias = patch_embedding_backward(dx[:, 1:], cache.patches)
        self.weight.accumulate(dweight)
        self.bias.accumulate(dbias)
        return dimages


@cache_class
class ViTCache(NamedTuple):
    """The cache of ViT."""

    embedding: ViTEmbeddingCache
    encoder: StackCache
    shape: tuple[int, ...]  # that of the output of the encoder
    head: LinearCache | None


class ViT(Module):
    """A vision Transformer. Shapes: images (B, C, Y, X) -> logits (B, K) of K classes.

    Without a head (n_classes 0), the output is that of the last norm, (B, N + 1, D).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If images have another shape.
    """

    def __init__(
        self, config: ViTConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.config = config
        self.embedding = ViTEmbedding(config, rng=rng, dtype=dtype)
        self.encoder = Encoder(config.encoder, rng=rng, dtype=dtype)
        self.head = None
        if config.n_classes:
            self.head = Linear(config.d_model, config.n_classes, rng=rng, dtype=dtype)
        self.flatten()

    def forward(
        self, images: Any, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[Array, ViTCache]:
        """Compute the logits of the classes.

        Args:
            images: The images, of shape (B, C, Y, X), with the numbers for which the model was trained.
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.

        Returns:
            The logits, of shape (B, K), or without a head the output of the last norm, and the cache.
        """
        context, images = Context(train, rng), self._taken(images)
        x, embedding_cache = self.embedding.forward(images, context)  # (B, N + 1, D)
        x, encoder_cache = self.encoder.forward(x, None, context)
        head_cache, shape = None, x.shape
        if self.head is not None:
            x, head_cache = self.head.forward(x[:, 0])  # (B, K)
        return x, ViTCache(embedding_cache, encoder_cache, shape, head_cache)

    def backward(self, dy: Array, cache: ViTCache) -> Array:
        """Accumulate the gradients of all parameters, and return dimages, of shape (B, C, Y, X)."""
        if self.head is not None and cache.head is not None:
            # logits = head(x_0): no other vector has an effect on them
            dx_0 = self.head.backward(dy, cache.head)
            dy = array_module(dy).zeros(cache.shape, dx_0.dtype)
            dy[:, 0] = dx_0
        dx = self.encoder.backward(dy, cache.encoder)
        return self.embedding.backward(dx, cache.embedding)

    def _taken(self, images: Any) -> Array:
        """Return images as an array of the model's dtype, on its device."""
        images = like(np.asarray(images) if isinstance(images, (list, tuple)) else images, self.reference)
        wanted = (self.config.n_colours, *self.config.image_size)
        if images.ndim != 4 or images.shape[1:] != wanted:
            raise UserError(
                f"images have the shape {images.shape}, and the model reads (B, {wanted[0]}, {wanted[1]}, "
                f"{wanted[2]}): batch, colours, height, width"
            )
        if images.dtype.kind == "c":  # the gradient check gives complex numbers
            return images
        taken: Array = images.astype(self.reference.dtype, copy=False)
        return taken
