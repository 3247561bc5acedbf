"""The patch embedding of a vision Transformer: an image becomes a sequence of vectors, one for each patch.

The image is cut into rectangles that do not overlap. The numbers of a patch, all colours together, are
multiplied by a matrix, as the one-hot vector of a token is multiplied by the table of tokens. This is a
convolution whose stride is the size of its kernel.

Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1.
"""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, like
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.linear import LinearCache, linear, linear_backward
from npformer.validation import require_count


@cache_class
class PatchEmbeddingCache(NamedTuple):
    """The cache of patch_embedding."""

    linear: LinearCache
    shape: tuple[int, ...]  # that of the images, (B, C, Y, X)
    kernel: tuple[int, ...]  # that of the weight, (D, C, P, Q)


def patch_embedding(images: Array, weight: Array, bias: Array) -> tuple[Array, PatchEmbeddingCache]:
    """Compute y_n = patch_n weightᵀ + bias for each patch of P × Q pixels, row by row from the upper left.

    Args:
        images: The images, of shape (B, C, Y, X), where C is the number of colours. Y is a multiple of P, and
            X of Q.
        weight: The kernel, of shape (D, C, P, Q).
        bias: The bias, of shape (D,).

    Returns:
        y, of shape (B, N, D) for the N = Y/P · X/Q patches, and the cache.

    Source: Dosovitskiy et al. 2021, equation 1.
    """
    kernel = weight.reshape(len(weight), -1).T  # (C·P·Q, D)
    y, cache = linear(cut_patches(images, weight.shape[2:]), kernel, bias)  # (B, N, D)
    return y, PatchEmbeddingCache(cache, images.shape, weight.shape)


def patch_embedding_backward(dy: Array, cache: PatchEmbeddingCache) -> tuple[Array, Array, Any]:
    """Return the gradients dimages (B, C, Y, X), dweight (D, C, P, Q) and dbias (D,).

    Shapes: dy (B, N, D).
    """
    # y = patches kernel + bias
    dpatches, dkernel, dbias = linear_backward(dy, cache.linear)
    # no two patches share a pixel, so the gradients are only put back to their places
    dimages = join_patches(dpatches, cache.shape, cache.kernel[2:])
    return dimages, dkernel.T.reshape(cache.kernel), dbias


def cut_patches(images: Array, size: tuple[int, ...]) -> Array:
    """Return the patches of images as rows. Shapes: images (B, C, Y, X), size (P, Q) -> (B, N, C·P·Q)."""
    b, c, height, width = images.shape
    p, q = size
    cut = images.reshape(b, c, height // p, p, width // q, q)
    patches: Array = cut.transpose(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * q)
    return patches


def join_patches(patches: Array, shape: tuple[int, ...], size: tuple[int, ...]) -> Array:
    """Return the images whose patches are given, the way back from cut_patches.

    Args:
        patches: The patches, of shape (B, N, C·P·Q).
        shape: The shape of the images, (B, C, Y, X).
        size: The size of a patch, (P, Q).
    """
    b, c, height, width = shape
    p, q = size
    cut = patches.reshape(b, height // p, width // q, c, p, q)
    images: Array = cut.transpose(0, 3, 1, 4, 2, 5).reshape(shape)
    return images


def check_patches(image_size: tuple[int, int], patch_size: tuple[int, int]) -> None:
    """Raise UserError unless both sizes, (height, width), are positive, and the second divides the first."""
    for size in (*image_size, *patch_size):
        require_count("a size of images and patches", size)
    if any(pixels % patch for pixels, patch in zip(image_size, patch_size, strict=True)):
        raise UserError(
            f"images of {image_size} pixels cannot be cut into patches of {patch_size}: give a patch_size "
            "that divides image_size"
        )


def take_images(images: Any, shape: tuple[int, ...], where: Array) -> Array:
    """Check images and move them to the device of the array `where`, with its dtype.

    Args:
        images: Lists or an array of numbers, of shape (B, C, Y, X).
        shape: The shape of an image, (C, Y, X).
        where: An array of the model. Complex numbers, which the check of gradients gives, keep their dtype.

    Raises:
        UserError: If the images have another shape.
    """
    images = like(np.asarray(images) if isinstance(images, (list, tuple)) else images, where)
    if images.ndim != 4 or images.shape[1:] != shape:
        raise UserError(
            f"images have the shape {images.shape}, and the model reads (B, {shape[0]}, {shape[1]}, "
            f"{shape[2]}): batch, colours, height, width"
        )
    taken: Array = images if images.dtype.kind == "c" else images.astype(where.dtype, copy=False)
    return taken
