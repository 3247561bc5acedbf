"""The process of one trial: run pytest on the package in a folder."""

import os
import re
import sys
from pathlib import Path

OPTIONS = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # halves the time
WRONG_COPY = 70  # pytest's own exit statuses are 0 to 5


class LikelyFirst:
    """A plugin that moves the tests that will probably catch the fault to the front."""

    def __init__(self, words):
        self.words = words

    def pytest_collection_modifyitems(self, items):
        """Put the tests first whose names share most words with the fault."""
        items.sort(key=lambda item: -sum(word in item.name.lower() for word in self.words))


class Chosen:
    """A plugin that runs the given tests only, in the given order."""

    def __init__(self, identifiers):
        self.places = {identifier: place for place, identifier in enumerate(identifiers)}

    def pytest_collection_modifyitems(self, items):
        """Leave out the tests that are not chosen, and sort the others."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.places), key=lambda item: self.places[item.nodeid]
        )


def main(folder, output, tests, words, chosen, plugin=None):
    """Run the tests and exit with the status of pytest, or WRONG_COPY.

    Args:
        folder: The folder with the copy of the package.
        output: The file for what the tests print.
        tests: The paths of the test files.
        words: Words of the fault: the tests whose names share most of them run first.
        chosen: The identifiers of the tests that run, in this order, or None for all.
        plugin: One more plugin of pytest, or None.
    """
    file = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(folder)
    os.environ.update(ENVIRONMENT, PYTHONPATH=folder)  # the path is for processes that the tests start
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = False  # the next trial need not compile the tests again
    sys.modules["torch"] = None  # the golden file replaces PyTorch, whose import takes seconds
    import npformer

    if not Path(npformer.__file__).is_relative_to(folder):
        print(f"npformer was imported from {npformer.__file__}, not from {folder}")
        sys.exit(WRONG_COPY)
    import pytest

    order = Chosen(chosen) if chosen else LikelyFirst(set(re.findall(r"\w{3,}", words.lower())))
    status = pytest.main([*OPTIONS, *tests], plugins=[order, *([plugin] if plugin else [])])
    sys.exit(int(status))
