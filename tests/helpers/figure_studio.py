"""A studio whose two models are trained for a few steps, shared by all tests of a test run."""

import pytest

STEPS = 300


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """Return a studio. Its models are small and trained just enough to end their sentences."""
    from npformer.learn.figures import Studio  # here, since most test runs need no matplotlib

    return Studio(folder=tmp_path_factory.mktemp("studio"), steps=STEPS)
