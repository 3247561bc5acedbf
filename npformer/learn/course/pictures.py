"""Show the figures of a lesson in the terminal, on a page or in a notebook, or save them as files."""

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npformer.storage.atomic import make_folder

if TYPE_CHECKING:
    from npformer.plots import Figure

FOLDER = "lesson_figures"  # below the working directory


class Picture(NamedTuple):
    """A figure of a lesson."""

    figure: "Figure"
    name: str  # without ending, as 05_weights
    caption: str

    def png(self) -> bytes:
        """Return the bytes of the PNG file."""
        from npformer.plots.style import DPI, drawing  # matplotlib takes a second to load

        buffer = io.BytesIO()
        with drawing():
            self.figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
        return buffer.getvalue()

    def save(self, folder: Path) -> Path:
        """Write the PNG into a folder, which is created if it is missing, and return its path.

        Raises:
            UserError: If the folder cannot be created or the file cannot be written.
        """
        from npformer.plots import save

        make_folder(folder, advice="go to a folder that may be written to")
        return save(self.figure, folder / f"{self.name}.png")


_collected: ContextVar[list[Picture] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting() -> Iterator[list[Picture]]:
    """Collect the pictures that are passed to `show_figure` in the yielded list, instead of showing them."""
    pictures: list[Picture] = []
    token = _collected.set(pictures)
    try:
        yield pictures
    finally:
        _collected.reset(token)


def open_file(path: Path) -> str:
    """Open a file with the program that the system has for it. Return one sentence about what was done."""
    if sys.platform == "win32":
        os.startfile(path)
        return f"opened {path}"
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name)
    has_display = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if program is None or not has_display:
        return f"no program opens pictures here: copy {path} to a computer with a display"
    quiet = subprocess.DEVNULL
    subprocess.Popen([program, path], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    return f"opened {path}"


def show_figure(figure: "Figure", name: str, caption: str = "") -> None:
    """Show a figure of a lesson.

    In a notebook it appears below the cell, and with `npformer lesson` in the terminal or on the page. In a
    plain script it is saved as lesson_figures/NAME.png, and the path is printed.

    Args:
        figure: The figure.
        name: The name of the file without its ending, such as "05_weights".
        caption: One sentence.
    """
    picture = Picture(figure, name, caption)
    collected = _collected.get()
    if collected is not None:
        collected.append(picture)
    elif not _displayed(picture):
        print(f"figure {picture.save(Path(FOLDER))}" + (f": {caption}" if caption else ""))


def _displayed(picture: Picture) -> bool:
    """Show the picture in a notebook. Return False outside of one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return False
    data = {"image/png": picture.png(), "text/plain": picture.caption}
    sys.modules["IPython.display"].display(data, raw=True)
    if picture.caption:
        print(picture.caption)
    return True
