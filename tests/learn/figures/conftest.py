"""The models with which the figures of trained models are compared."""

import pytest
from trained_oracle import Oracle


@pytest.fixture(scope="session")
def oracle(studio):
    """Return the first model from English to French, trained if no test needed it before."""
    assert studio.checkpoint.step == studio.steps
    return Oracle(studio.folder)


@pytest.fixture(scope="session")
def french_oracle(studio):
    """Return the model from French to English."""
    assert studio.from_french.model.config.n_layers == 2
    return Oracle(studio.folder / "fr-en")
