"""python inside.py FOLDER ...: run pytest with these arguments on the package that lies in FOLDER.

Tests whose names have words of $PLANTED, a bug's file and name, come first: the first failure ends the run.
"""

import os
import re
import sys
from pathlib import Path

WRONG_COPY = 70  # exit status: pytest's own are 0 to 5


class LikelyFirst:
    """A plugin that moves the tests which a bug is likely to fail to the front."""

    def __init__(self, words):
        self.words = words

    def pytest_collection_modifyitems(self, items):
        """Those with most of the words first; the others keep their order."""
        items.sort(key=lambda item: -sum(word in item.name.lower() for word in self.words))


def main(folder, *arguments):
    """Make sure that it is the copy which is tested. Returns pytest's exit status, or WRONG_COPY."""
    sys.path[0] = folder  # in place of this script's folder
    sys.modules["torch"] = None  # the golden file stands for it, and importing it takes seconds
    import npformer

    if not Path(npformer.__file__).is_relative_to(folder):
        print(f"npformer was imported from {npformer.__file__}, not from {folder}")
        return WRONG_COPY
    import pytest

    words = set(re.findall(r"\w{3,}", os.environ.get("PLANTED", "").lower()))
    return pytest.main(list(arguments), plugins=[LikelyFirst(words)])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
