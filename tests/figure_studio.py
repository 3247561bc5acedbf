"""A studio whose two models are trained for a few steps, shared by all tests of a session."""

import pytest

from npformer.figures import Studio

STEPS = 40


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    """Small and untrained as its models are, what they compute is what the figures must show."""
    return Studio(folder=tmp_path_factory.mktemp("studio"), steps=STEPS)
