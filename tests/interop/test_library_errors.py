"""Errors of the libraries for tokenizers as errors of the user's files."""

import pytest

from npformer.errors import UserError
from npformer.interop.library_errors import library_errors


class PanicException(BaseException):
    """The error that a Rust library raises where its own code fails; its own class has this name."""


@pytest.mark.parametrize("error", [Exception, RuntimeError, PanicException])
def test_an_error_of_a_library_becomes_one_sentence(error):
    message = r"^a file is damaged \(no \\x1b model\): copy it$"
    with pytest.raises(UserError, match=message), library_errors("a file is damaged", "copy it"):
        raise error("no\n\x1b  model")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, UserError("as it is")])
def test_other_errors_stay(error):
    kind = error if isinstance(error, type) else UserError
    with pytest.raises(kind, match=r"^(as it is)?$"), library_errors("a file is damaged", "copy it"):
        raise error
