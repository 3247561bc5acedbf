"""The pictures that a command draws: written, shown in the terminal, with a note about missing fonts."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from npformer.cli.output import console, note, print_line
from npformer.errors import UserError
from npformer.learn.course.terminal_pictures import print_pictures
from npformer.storage.atomic import require_place

if TYPE_CHECKING:
    from npformer.plots import Figure


def note_missing_fonts(tokens: Iterable[str]) -> None:
    """Print a note that names the characters of tokens that no installed font has, if there are any."""
    from npformer.plots.style import FONT_ADVICE, missing_characters, no_font_for  # needs matplotlib

    missing = missing_characters("".join(tokens))
    if missing:
        note(f"{no_font_for(missing)}, so the pictures have code points such as U+6211: {FONT_ADVICE}")


def require_picture(path: Path) -> None:
    """Check, before the work, that a picture can be written to a file.

    Raises:
        UserError: If its name has another ending than those of pictures, or its folder cannot be written to.
    """
    from npformer.plots.style import kind_of_picture  # needs matplotlib

    kind_of_picture(path)
    require_place(path, advice="give a folder that exists and may be written to")


def write_picture(draw: "Callable[[], Figure]", path: Path, texts: Iterable[str]) -> None:
    """Draw and write a picture, say so, and show it in the terminal if that can show pictures.

    If it cannot be drawn, as for too many tokens, a note says so: what was printed before it stands.

    Args:
        draw: A function that draws the picture.
        path: Its file.
        texts: The texts in it that come from a model or a user, whose characters may have no font.
    """
    from npformer.plots import save

    try:
        figure = draw()
    except UserError as error:
        note(f"there is no picture, because {error}")
        return
    note_missing_fonts(texts)
    print_line(f"wrote {save(figure, path)}")
    print_pictures(console(), [(figure, path)])
