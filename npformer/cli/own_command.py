"""Command lines for the reader, as they have to be typed where the shell does not find the name npformer."""

import re
import shutil
import sys
from pathlib import Path

from npformer.escaping import shell_word

# the commands that npformer names in its instructions: in a sentence, another word may follow its name
_NAMED = "bugs|build|class|exercise|explore|glossary|gradcheck|index|lessons?|train|translate"
_COMMAND = re.compile(rf"(?<![\w./-])npformer(?= (?:{_NAMED})\b)")


def own_command() -> str:
    """Return what the reader has to type for npformer: its path, where the shell does not find the name."""
    script = Path(sys.executable).with_name("npformer")
    found = shutil.which("npformer")
    if not script.exists() or (found is not None and Path(found).samefile(script)):
        return "npformer"
    here = Path.cwd()
    return shell_word(script.relative_to(here) if script.is_relative_to(here) else script)


def as_typed(text: str) -> str:
    """Return a text in which the command lines of npformer begin as the reader has to type them."""
    own = own_command() if _COMMAND.search(text) else "npformer"
    return text if own == "npformer" else _COMMAND.sub(lambda _: own, text)
