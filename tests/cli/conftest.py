"""What several tests of commands use."""

import dataclasses

import pytest

from npformer.data.dataset import builtin_dataset


@pytest.fixture(scope="session")
def some_pairs():
    """Return the built-in dataset with a part of its sentences, which is made once for all commands."""
    whole = builtin_dataset()
    return dataclasses.replace(whole, train=whole.train[:3000], valid=whole.valid[:50])
