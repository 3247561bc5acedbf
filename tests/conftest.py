"""Options and fixtures of all tests."""

import os
import random
import signal
import sys
from datetime import date
from itertools import groupby

import figure_studio
import hypothesis
import numpy as np
import pytest
import strict_cupy
from threadpoolctl import threadpool_limits

pytest.register_assert_rewrite("every_lesson", "kernel_comparison", "parsed_page", "training_runs")

studio = figure_studio.studio  # a fixture for all tests

# One thread for the products of small matrices: two would wait for each other most of the time, and a test
# that trains would take up to five times as long. Workers of xdist and other children inherit the variables
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
threadpool_limits(1)  # and this process, which has imported NumPy already

# the commands that npformer prints begin with its name only if the shell finds it
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])

# as in a terminal: jobs in the background, and their children, start with Ctrl-C ignored, and those under
# nohup with SIGHUP ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # Windows has none
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same code gives the same result, so the examples of Hypothesis are the same in every run. Every night
# they are drawn afresh, and what that finds becomes an example. A limit on the wall time of an example
# would fail at random on a busy machine, and no folder keeps examples that only this machine has
NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))
hypothesis.settings.register_profile(
    "npformer",
    derandomize=not NIGHTLY,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("npformer")
ORDER = os.environ.get("NPFORMER_ORDER") or (f"{date.today()}" if NIGHTLY else "")


def pytest_addoption(parser):
    parser.addoption(
        "--backend",
        choices=("numpy", "cupy"),
        default="numpy",
        help="cupy runs the device tests on a real GPU, not on the strict stand-in",
    )


def pytest_report_header():
    """Say which order the tests have, if it is drawn."""
    return f"NPFORMER_ORDER={ORDER} draws the order of the tests" if ORDER else None


def pytest_collection_modifyitems(items):
    """Mark the tests that use the fixture `device`, and skip those for the night unless they are asked for.

    With --backend cupy, the tests with `device` run on a real GPU. Every night, and where the environment
    variable NPFORMER_ORDER is set, files and the tests in each are run in an order that it draws.
    """
    for item in items:
        if "nightly" in item.keywords and not NIGHTLY:
            item.add_marker(pytest.mark.skip(reason="it takes minutes: set NPFORMER_NIGHTLY=1 to run it"))
        if "device" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
    if ORDER:
        draw = random.Random(ORDER)
        files = [
            draw.sample(found, len(found)) for found in (list(g) for _, g in groupby(items, lambda i: i.path))
        ]
        items[:] = [item for file in draw.sample(files, len(files)) for item in file]


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
