"""The folder of a site: new, empty, or with an earlier site, whose list of files says what is replaced."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from npformer.errors import UserError
from npformer.storage.atomic import explain_os_errors, make_folder, write_file
from npformer.storage.json_files import read_json

LIST = "npformer-site.json"  # the list of the files of the site
ADVICE = "give another folder"


class SiteFolder:
    """A folder to which a site is written, file by file: each file is replaced completely or not at all.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> None:
        """Check that the folder can be written and holds nothing but an earlier site, before minutes of work.

        Raises:
            UserError: If it cannot be made or written, or if it holds other files.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} cannot be written (it is a file): {ADVICE}")
        make_folder(self.path, advice=ADVICE)
        with explain_os_errors(self.path, "read", ADVICE):
            is_empty = not any(self.path.iterdir())
        if not is_empty and not (self.path / LIST).is_file():
            raise UserError(f"{self.path} is not empty and not a site of npformer: {ADVICE}")
        self._listed()

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write all files, and remove those of an earlier site that the new one does not have.

        Raises:
            UserError: If a file cannot be written. Every file is then an old one or a new one.
        """
        old = self._listed()
        self._write_list({*old, *files})  # whatever happens from here on, the folder is known as a site
        for path, data in files.items():
            target = self._target(path)
            make_folder(target.parent, advice=ADVICE)
            write_file(target, data, advice=ADVICE)
        for path in old - files.keys():
            with explain_os_errors(self.path / path, "removed", ADVICE):
                self._target(path).unlink(missing_ok=True)
        self._write_list(set(files))

    def _target(self, path: str) -> Path:
        """Return the path of a file of the site, or raise UserError if a link leads its folder outside."""
        target = self.path / path
        if not target.parent.resolve().is_relative_to(self.path.resolve()):
            raise UserError(f"{target} cannot be written (a link leads outside {self.path}): {ADVICE}")
        return target

    def _write_list(self, files: set[str]) -> None:
        text = json.dumps({"format": 1, "files": sorted(files)}, ensure_ascii=False, indent=0)
        write_file(self.path / LIST, text.encode("utf-8"), advice=ADVICE)

    def _listed(self) -> set[str]:
        """Return the files of the earlier site, which are none in an empty folder.

        Raises:
            UserError: If the list is damaged, or names files outside of the folder.
        """
        path = self.path / LIST
        if not path.exists():
            return set()
        data = read_json(path, f"the list {path}", ADVICE)
        files = data.get("files") if isinstance(data, dict) else None
        if not isinstance(files, list) or not all(
            isinstance(file, str) and _is_inside(file) for file in files
        ):
            raise UserError(f"{path} is not the list of the files of a site: {ADVICE}")
        return set(files)


def _is_inside(file: str) -> bool:
    """Return whether a path leads to a file below the folder."""
    path = PurePosixPath(file)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in file
