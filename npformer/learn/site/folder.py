"""The folder of a site: new, empty, or with an earlier site and nothing else, which is replaced."""

import json
import shutil
from pathlib import Path

from npformer.errors import UserError
from npformer.storage.atomic import explain_os_errors, require_folder_place, write_file
from npformer.storage.json_files import read_json

LIST = "npformer-site.json"  # the list of the files of the site
ADVICE = "give another folder"


def check_folder(out: Path) -> None:
    """Check, before minutes of work, that a folder can be written and has no file but those of a site.

    Raises:
        UserError: If it cannot be made or written, or if it has other files.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} cannot be written (it is a file): {ADVICE}")
    require_folder_place(out, advice=ADVICE)
    with explain_os_errors(out, "read", ADVICE):
        others = _files_of(out).keys() - {Path(each) for each in _listed(out)} - {Path(LIST)}
    if others:
        raise UserError(f"{out} has {min(others)}, which is no file of a site of npformer: {ADVICE}")


def replace_content(out: Path, made: Path) -> dict[Path, int]:
    """Replace the content of a folder by that of another one, and return its files with their bytes.

    Whatever interrupts this, the list has all files of the folder, so that the site can be written again.

    Args:
        out: The folder, which `check_folder` has checked.
        made: The folder with the new site.

    Raises:
        UserError: If a file cannot be written.
    """
    files = _files_of(made)
    with explain_os_errors(out, "written", ADVICE):
        out.mkdir(parents=True, exist_ok=True)
        _write_list(out, {*_listed(out), *map(Path.as_posix, files)})
        for old in out.iterdir():
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            elif old.name != LIST:
                old.unlink()
        shutil.copytree(made, out, dirs_exist_ok=True)
        _write_list(out, set(map(Path.as_posix, files)))
    return files


def _files_of(folder: Path) -> dict[Path, int]:
    """Return all files below a folder, from there, with their bytes. A link is a file, too."""
    files = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return {path.relative_to(folder): path.lstat().st_size for path in files}


def _listed(out: Path) -> list[str]:
    """Return the files of the site in a folder: none if there is no list of them, or a damaged one."""
    data = read_json(out / LIST, "the list of the site", ADVICE) if (out / LIST).exists() else None
    files = data.get("files") if isinstance(data, dict) else None
    return list(map(str, files)) if isinstance(files, list) else []


def _write_list(out: Path, files: set[str]) -> None:
    text = json.dumps({"format": 1, "files": sorted(files)}, ensure_ascii=False, indent=0)
    write_file(out / LIST, text.encode("utf-8"), advice=ADVICE)
