"""Errors of the libraries `tokenizers` and `sentencepiece` as errors of the user's files."""

import contextlib
from collections.abc import Iterator

from npformer.errors import UserError
from npformer.escaping import printable

_LONGEST_REASON = 200  # characters


@contextlib.contextmanager
def library_errors(problem: str, advice: str) -> Iterator[None]:
    """Raise UserError with the problem, the library's reason and the advice where a library fails.

    `tokenizers` raises plain Exception, and PanicException, a BaseException, where its own code fails.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # such as Ctrl-C
        reason = printable(" ".join(str(error).split()))[:_LONGEST_REASON]
        raise UserError(f"{problem} ({reason}): {advice}") from None
