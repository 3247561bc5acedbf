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

from npformer.backend import Array, array_module
from npformer.errors import Registry
from npformer.functional.caches import cache_class
from npformer.functional.patches import PatchEmbeddingCache, check_patches, take_images
from npformer.models.classifier import ClassifierHead
from npformer.models.encoder import EncoderConfig, EncoderModel, EncoderModelCache
from npformer.models.settings import registry
from npformer.models.transformer.stacks import Encoder
from npformer.nn import Dropout
from npformer.nn.context import INFERENCE, Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.init import default_rng, normal
from npformer.nn.module import Module, Parameter
from npformer.nn.patches import PatchEmbedding

INITIAL_STD = 0.02  # the standard deviation of the initial vectors


@dataclass(frozen=True)
class ViTConfig(EncoderConfig):
    """The settings of a ViT. The defaults are those of ViT-Base with patches of 16 × 16 pixels.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    reads: ClassVar[str] = "images"
    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of ViT", {})
    norm: ClassVar[str] = "pre"

    image_size: tuple[int, int] = (224, 224)  # height and width, in pixels
    patch_size: tuple[int, int] = (16, 16)
    n_colours: int = 3
    n_classes: int = 0  # 0 for a model without a head, whose output is that of the last norm
    dropout: float = 0.0
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(counts=("n_colours",), indices=("n_classes",))
        for name in ("image_size", "patch_size"):
            object.__setattr__(self, name, tuple(getattr(self, name)))  # a list in a checkpoint
        check_patches(self.image_size, self.patch_size)

    @property
    def grid(self) -> tuple[int, int]:
        """The number of patches in a column and in a row of an image."""
        return self.image_size[0] // self.patch_size[0], self.image_size[1] // self.patch_size[1]

    @property
    def max_length(self) -> int:
        """The number of vectors, N + 1."""
        return self.grid[0] * self.grid[1] + 1


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
        rng, d, size = default_rng(rng), config.d_model, config.patch_size
        self.patches = PatchEmbedding(d, config.n_colours, size, std=INITIAL_STD, rng=rng, dtype=dtype)
        self.class_vector = Parameter(normal(rng, (1, 1, d), INITIAL_STD, dtype))
        self.positions = Parameter(normal(rng, (1, config.max_length, d), INITIAL_STD, dtype))
        self.dropout = Dropout(config.dropout)

    def forward(self, images: Array, context: Context = INFERENCE) -> tuple[Array, ViTEmbeddingCache]:
        """Return y, of shape (B, N + 1, D), and the cache."""
        xp = array_module(images)
        x, patches_cache = self.patches.forward(images)  # (B, N, D)
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
        return self.patches.backward(dx[:, 1:], cache.patches)


class ViT(EncoderModel):
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
            self.head = ClassifierHead(config.d_model, config.n_classes, first=True, rng=rng, dtype=dtype)
        self.flatten()

    def forward(
        self, images: Any, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[Array, EncoderModelCache]:
        """Compute the logits of the classes.

        Args:
            images: The images, of shape (B, C, Y, X), with the numbers for which the model was trained.
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.

        Returns:
            The logits, of shape (B, K), or without a head the output of the last norm, and the cache.
        """
        context = Context(train, rng)
        images = take_images(images, (self.config.n_colours, *self.config.image_size), self.reference)
        x, embedding_cache = self.embedding.forward(images, context)  # (B, N + 1, D)
        return self.forward_from(x, embedding_cache, None, context)
