"""The folder of a site: new, empty, or with an earlier site, over which the new one is written."""

import shutil
from pathlib import Path

from npformer.errors import UserError
from npformer.storage.atomic import explain_os_errors, require_folder_place

MARK = "objects.inv"  # Sphinx writes it into every site
PROJECT = b"# Project: npformer\n"  # stands in it
ADVICE = "give another folder"


def check_folder(out: Path) -> None:
    """Check, before minutes of work, that a folder can be written and has files of a site or none.

    Raises:
        UserError: If it cannot be made or written, if it has files but no site, or if it has links.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} cannot be written (it is a file): {ADVICE}")
    require_folder_place(out, advice=ADVICE)
    with explain_os_errors(out, "read", ADVICE):
        paths = sorted(out.rglob("*"))
        links = [path for path in paths if path.is_symlink()]  # they may lead to files elsewhere
        mark = out / MARK
        is_site = mark.is_file() and PROJECT in mark.read_bytes()
    if links or (paths and not is_site):
        other = (links or paths)[0].relative_to(out)
        raise UserError(f"{out} has {other}, which is no file of a site of npformer: {ADVICE}")


def write_folder(out: Path, made: Path) -> None:
    """Write a new site into a folder that `check_folder` has checked. Other files in it stay.

    Raises:
        UserError: If a file cannot be written.
    """
    with explain_os_errors(out, "written", ADVICE):
        out.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / MARK, out)  # first, so that after an interruption the site can be written again
        shutil.copytree(made, out, dirs_exist_ok=True)
