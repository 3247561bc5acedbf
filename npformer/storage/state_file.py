"""Small JSON files in which the package remembers the user's progress."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.storage.atomic import create_atomically, locked_folder, write_atomically
from npformer.storage.json_files import MOST_BYTES, parse_json, require_object, require_version

FORMAT = 1  # increases when an older npformer could no longer read a new file


class StateFile:
    """A JSON object in a file. Nothing that the file holds is lost, even if it is damaged.

    A missing file counts as empty. Of a damaged file, the entries that are right count, and a copy of it is
    kept beside it before it is written again. A file of a newer npformer is neither read nor replaced.

    Args:
        path: The file.
        clean: Returns the content without wrong entries.
        key: The entry with the version of the format. A file without it has version 1.
    """

    def __init__(
        self, path: Path, clean: Callable[[dict[str, Any]], dict[str, Any]], key: str = "format"
    ) -> None:
        self.path, self.clean, self.key = path, clean, key

    def read(self) -> dict[str, Any]:
        """Return the content without wrong entries.

        Raises:
            UserError: If a newer npformer wrote the file.
        """
        return self._load()[0]

    def update(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
        """Replace the content by change(content), and lose nothing that another process writes meanwhile.

        Args:
            change: Returns the new content. It may read the file.

        Returns:
            A note about the copy of a damaged file, or "".

        Raises:
            OSError: If the file cannot be written.
            UserError: If a newer npformer wrote the file that is there.
        """
        with locked_folder(self.path.parent):
            return self.write(change(self.read()))

    def write(self, content: dict[str, Any]) -> str:
        """Replace the content.

        Returns:
            A note about the copy of a damaged file, or "".

        Raises:
            OSError: If the file cannot be written.
            UserError: If a newer npformer wrote the file that is there.
        """
        damaged, note = self._load()[1], ""
        if damaged:
            copy = self._copy_of(damaged)
            note = f"{self.path} was damaged: a copy of it is {copy}"
        text = json.dumps({self.key: FORMAT} | content, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.path, text.encode())
        return note

    def _load(self) -> tuple[dict[str, Any], bytes]:
        """Return the content without wrong entries, and the bytes of the file if they are damaged."""
        try:
            with open(self.path, "rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError:  # no such file, or one that cannot be written either
            return {}, b""
        try:
            what = str(self.path)
            content = require_object(parse_json(data, what, ""), what, "")
        except UserError:
            return {}, data
        try:
            require_version(content, what, FORMAT, key=self.key)
        except UserError as error:
            raise UserError(f"{error}, or move the file away") from None
        content.pop(self.key, None)
        cleaned = self.clean(content)
        return cleaned, b"" if cleaned == content else data

    def _copy_of(self, data: bytes) -> Path:
        """Write the bytes to a file beside this one, unless an earlier copy has them, and return its path."""
        copy, number = self.path.with_name(f"{self.path.name}.damaged"), 1
        while os.path.lexists(copy):
            with contextlib.suppress(OSError):
                if copy.read_bytes() == data:
                    return copy
            number += 1
            copy = self.path.with_name(f"{self.path.name}.damaged-{number}")
        create_atomically(copy, data)
        return copy
