"""Reading files up to a limit: a file from outside may be larger than the memory, or a device without end."""

from pathlib import Path

from npformer.errors import UserError
from npformer.storage.atomic import explain_os_errors


def read_up_to(path: Path, most: int, advice: str, *, what: str = "") -> bytes:
    """Return the content of a file, or raise UserError if it cannot be read or has more bytes than `most`.

    Args:
        path: The file.
        most: The largest number of bytes, of which no more than one is read in addition.
        advice: The end of the error message.
        what: The noun for the file, with its name; the default is its path.
    """
    what = what or str(path)
    with explain_os_errors(what, "read", advice), open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise too_large(what, most, advice)
    return data


def too_large(what: Path | str, most: int, advice: str) -> UserError:
    """Return the error for a file with more bytes than `most`.

    Args:
        what: The path of the file, or a noun for it.
        most: The largest number of bytes.
        advice: The end of the message.
    """
    return UserError(f"{what} has more than {most >> 20} MB: {advice}")
