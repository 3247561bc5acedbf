"""Options and fixtures of all tests."""

import os
import signal

import figure_studio
import hypothesis
import numpy as np
import pytest
import strict_cupy

pytest.register_assert_rewrite("gpu_comparison", "training_runs")

studio = figure_studio.studio  # a fixture for all tests

# as in a terminal: jobs in the background, and their children, start with Ctrl-C ignored, and those under
# nohup with SIGHUP ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # Windows has none
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# no limit on the wall time of an example, which would fail at random on a busy machine
hypothesis.settings.register_profile(
    "npformer", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("npformer")


def pytest_addoption(parser):
    parser.addoption(
        "--backend",
        choices=("numpy", "cupy"),
        default="numpy",
        help="cupy runs the device tests on a real GPU, not on the strict stand-in",
    )


def pytest_collection_modifyitems(items):
    """Mark the tests that use the fixture `device`, and skip those for the night unless they are asked for.

    With --backend cupy, the tests with `device` run on a real GPU.
    """
    for item in items:
        if "nightly" in item.keywords and not os.environ.get("NPFORMER_NIGHTLY"):
            item.add_marker(pytest.mark.skip(reason="it takes minutes: set NPFORMER_NIGHTLY=1 to run it"))
        if "device" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def lesson_runs(tmp_path_factory):
    """Return the folder runs/ of the lessons' tests: chapter 15 uses the model that chapter 13 trained."""
    runs = tmp_path_factory.mktemp("runs")
    try:
        runs.with_name("link").symlink_to(runs)
    except OSError:  # on Windows, making links is a privilege
        pytest.skip("this user cannot make symbolic links")
    return runs


@pytest.fixture
def device(request, monkeypatch):
    """Return the module cupy: the real one with --backend cupy, the strict stand-in otherwise."""
    if request.config.getoption("--backend") == "cupy":
        if not strict_cupy.real_cupy_available():
            pytest.fail("--backend cupy: no GPU answers through CuPy on this machine")
        import cupy

        return cupy
    return strict_cupy.install(monkeypatch)


@pytest.fixture
def rng():
    """Return a generator with the same seed in every test."""
    return np.random.default_rng(0)
