"""A studio whose two models are trained for a few steps, shared by all tests of a test run."""

import pytest

from npformer.learn.figures import Studio

STEPS = 100


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """Return a studio. Its models are small and hardly trained, because figures show any model's numbers."""
    return Studio(folder=tmp_path_factory.mktemp("studio"), steps=STEPS)
