"""The process of one trial: run pytest on the package in a folder."""

import os
import sys
from pathlib import Path

OPTIONS = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # halves the time
WRONG_COPY = 70  # pytest's own exit statuses are 0 to 5


class Chosen:
    """A plugin that runs the given tests only, in the given order."""

    def __init__(self, identifiers):
        self.places = {identifier: place for place, identifier in enumerate(identifiers)}

    def pytest_collection_modifyitems(self, items):
        """Leave out the tests that are not chosen, and sort the others."""
        chosen = (item for item in items if item.nodeid in self.places)
        items[:] = sorted(chosen, key=lambda item: self.places[item.nodeid])


class FirstFailure:
    """A plugin that writes the identifier of the first test that fails into a file."""

    def __init__(self, output):
        self.output = output

    def pytest_runtest_logreport(self, report):
        """Write the identifier of a test that failed."""
        if report.failed and not self.output.exists():
            self.output.write_text(report.nodeid, encoding="utf-8")

    pytest_collectreport = pytest_runtest_logreport


def main(folder, tests, chosen, seconds, plugin=None):
    """Run the tests and exit with the status of pytest, or WRONG_COPY.

    Args:
        folder: The folder with the copy of the package, which also gets output.txt and failure.txt.
        tests: The paths of the test files.
        chosen: The identifiers of the tests that run, in this order, or None for all.
        seconds: The limit of processor time, at which the process is killed.
        plugin: One more plugin of pytest, or None.
    """
    file = os.open(f"{folder}/output.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(folder)
    _limit_processor_time(seconds)
    os.environ.update(ENVIRONMENT, PYTHONPATH=folder)  # the path is for processes that the tests start
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = False  # the next trial need not compile the tests again
    sys.modules["torch"] = None  # the golden file replaces PyTorch, whose import takes seconds
    for name in [each for each in sys.modules if each.partition(".")[0] == "npformer"]:
        del sys.modules[name]  # the script of the mutants, which this process imports too, reads their table
    import npformer

    if not Path(npformer.__file__).is_relative_to(folder):
        print(f"npformer was imported from {npformer.__file__}, not from {folder}")
        sys.exit(WRONG_COPY)
    import pytest

    plugins = [FirstFailure(Path(folder, "failure.txt")), Chosen(chosen) if chosen else None, plugin]
    status = pytest.main([*OPTIONS, *tests], plugins=[each for each in plugins if each is not None])
    sys.exit(int(status))


def _limit_processor_time(seconds):
    """Let the system kill this process after so much processor time: a fault can make a loop endless."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
