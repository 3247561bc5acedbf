"""python inside.py FOLDER ...: run pytest with these arguments on the package that lies in FOLDER."""

import sys
from pathlib import Path

WRONG_COPY = 70  # exit status: pytest's own are 0 to 5


def main(folder, *arguments):
    """Make sure that it is the copy which is tested. Returns pytest's exit status, or WRONG_COPY."""
    sys.path[0] = folder  # in place of this script's folder
    sys.modules["torch"] = None  # the golden file stands for it, and importing it takes seconds
    import npformer

    if not Path(npformer.__file__).is_relative_to(folder):
        print(f"npformer was imported from {npformer.__file__}, not from {folder}")
        return WRONG_COPY
    import pytest

    return pytest.main(list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
