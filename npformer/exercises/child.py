"""The process in which the learner's code runs: python -m npformer.exercises.child NAME FILE RESULT SECONDS.

Whatever that code does, loop, exit, print without end, it does not do it to the command itself.
"""

import faulthandler
import io
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npformer.exercises import Verdict, find, grade
from npformer.exercises.grade import describe_error

PRINTED = 2000  # as many characters of what the learner prints are kept


class Kept(io.TextIOBase):
    """Takes what is printed, and keeps its beginning."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        """Keep it while there is room."""
        self.text += text[: PRINTED - len(self.text)]
        return len(text)

    def writable(self):
        """Yes."""
        return True


def check_file(name: str, file: str) -> Verdict:
    """Run the learner's file and grade its functions."""
    return run_file(file, lambda space: grade(find(name), space, file), f"npformer exercise start {name}")


def run_file(file: str, judge: Callable[[dict[str, Any]], Verdict], start: str) -> Verdict:
    """Run the learner's file, then judge what it defined; start is the command that writes such a file."""
    space: dict[str, Any] = {"__name__": "exercise", "__file__": file}
    try:
        text = Path(file).read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, file, "exec"), space)
        if not text.strip():
            return Verdict(False, f"the file is empty: move it away, and {start} writes it anew")
        return judge(space)
    except UnicodeDecodeError:
        return Verdict(False, "the file is not UTF-8 text")
    except SystemExit as error:
        return Verdict(False, f"your code ended the program (SystemExit {error.code}): leave out exit()")
    except BaseException as error:  # whatever the learner's code raises
        return Verdict(False, describe_error(error, file))


def main(check: Callable[[str, str], Verdict], name: str, file: str, result: str, seconds: str) -> None:
    """Write check(name, file) to a file as JSON. After these seconds, write where the code is, and end."""
    with open(f"{result}.stuck", "w", encoding="utf-8") as stuck:
        faulthandler.dump_traceback_later(float(seconds), exit=True, file=stuck)
        kept = Kept()
        sys.stdout = sys.stderr = kept
        verdict = check(name, file)
        faulthandler.cancel_dump_traceback_later()
    verdict.printed = kept.text
    Path(result).write_text(json.dumps(verdict.as_json()), encoding="utf-8")


if __name__ == "__main__":
    main(check_file, *sys.argv[1:])
