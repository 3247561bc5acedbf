"""Patches of images: cutting and joining are each other's inverse."""

import numpy as np

from npformer.functional.patches import cut_patches, join_patches


def test_joined_patches_are_the_images():
    images = np.random.default_rng(0).standard_normal((2, 3, 6, 8))  # 3 · 2 patches of each
    patches = cut_patches(images, (2, 4))
    np.testing.assert_array_equal(patches[1, 0].reshape(3, 2, 4), images[1, :, :2, :4])
    np.testing.assert_array_equal(join_patches(patches, images.shape, (2, 4)), images)
