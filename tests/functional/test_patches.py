"""Patches of images: cutting and joining are each other's inverse."""

import numpy as np
import pytest

from npformer.functional.patches import cut_patches, join_patches, take_images


@pytest.mark.parametrize("kind", [float, np.uint8, np.float32, list])
def test_images_of_every_kind_become_numbers_of_the_dtype_of_the_model(kind):
    images = np.arange(24).reshape(1, 2, 3, 4)
    given = images.tolist() if kind is list else images.astype(kind)
    taken = take_images(given, (2, 3, 4), np.zeros(1, np.float32))
    assert taken.dtype == np.float32
    np.testing.assert_array_equal(taken, images)
    assert take_images(images + 1j, (2, 3, 4), np.zeros(1)).imag.all()  # of a complex step


def test_joined_patches_are_the_images():
    images = np.random.default_rng(0).standard_normal((2, 3, 6, 8))  # 3 · 2 patches of each
    patches = cut_patches(images, (2, 4))
    np.testing.assert_array_equal(patches[1, 0].reshape(3, 2, 4), images[1, :, :2, :4])
    np.testing.assert_array_equal(join_patches(patches, images.shape, (2, 4)), images)
