"""Options and fixtures of all tests."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # helpers beside the tests

import figure_studio
import strict_cupy

studio = figure_studio.studio  # a fixture for all

# as in a terminal: a job in the background is born deaf to Ctrl-C, and so would be what it starts
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--backend",
        choices=("numpy", "cupy"),
        default="numpy",
        help="cupy runs the device tests on a real GPU, not on the strict stand-in",
    )


@pytest.fixture(scope="session")
def lesson_runs(tmp_path_factory):
    """The folder runs/ of the lessons' tests: lesson 15 looks into the model that lesson 13 trained."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def device(request, monkeypatch):
    """The module cupy: the real one with --backend cupy, the strict stand-in otherwise."""
    if request.config.getoption("--backend") == "cupy":
        if not strict_cupy.real_cupy_available():
            pytest.fail("--backend cupy: no GPU answers through CuPy on this machine")
        import cupy

        return cupy
    return strict_cupy.install(monkeypatch)


@pytest.fixture
def rng():
    """A generator that starts the same in every test."""
    return np.random.default_rng(0)
