"""The folders of a user in which npformer keeps files of its own, as the specification of XDG names them."""

import os
from pathlib import Path


def user_folder(variable: str, default: str) -> Path:
    """Return the folder of npformer in one of the user's folders.

    Args:
        variable: The variable of the environment that names the user's folder, such as XDG_CACHE_HOME.
        default: The folder without the variable, such as "~/.cache".
    """
    named = os.environ.get(variable, "")
    # the specification says to ignore a relative path
    return Path(named if os.path.isabs(named) else os.path.expanduser(default)) / "npformer"
