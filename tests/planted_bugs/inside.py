"""Run pytest with the given arguments on the package in a folder: python inside.py FOLDER ...

Tests whose names share words with $PLANTED, a bug's file and name, run first, and the first failure ends
the run.
"""

import os
import re
import sys
from pathlib import Path

WRONG_COPY = 70  # pytest's own exit statuses are 0 to 5


class LikelyFirst:
    """A plugin that moves the tests that will probably catch the bug to the front."""

    def __init__(self, words):
        self.words = words

    def pytest_collection_modifyitems(self, items):
        """Put the tests whose names share most words with the bug first, and keep the order of the others."""
        items.sort(key=lambda item: -sum(word in item.name.lower() for word in self.words))


def main(folder, *arguments):
    """Check that the copy is tested. Return the exit status of pytest, or WRONG_COPY."""
    sys.path[0] = folder  # instead of this script's folder
    sys.modules["torch"] = None  # the golden file replaces PyTorch, whose import takes seconds
    import npformer

    if not Path(npformer.__file__).is_relative_to(folder):
        print(f"npformer was imported from {npformer.__file__}, not from {folder}")
        return WRONG_COPY
    import pytest

    words = set(re.findall(r"\w{3,}", os.environ.get("PLANTED", "").lower()))
    return pytest.main(list(arguments), plugins=[LikelyFirst(words)])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
