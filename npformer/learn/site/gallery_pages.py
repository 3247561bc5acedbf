"""The gallery: a page for each figure, with its caption, its code and the lessons to which it belongs.

Figures without a trained model are drawn when the site is built. The others need minutes of training, so
their pictures are those of figures/ in a checkout. Where this folder is missing, a page says how to draw its
figure.
"""

import html
import re
from collections.abc import Sequence
from pathlib import Path

from npformer.learn.course.lesson import find_lesson
from npformer.learn.figures import DATA, SOURCES, Entry, all_entries
from npformer.learn.figures.gallery import PAGE
from npformer.learn.language.sources import CHECKOUT
from npformer.learn.site.markdown import Files, page, picture, templates
from npformer.plots.style import DPI


def gallery_pages(entries: Sequence[Entry] | None = None, *, stored: Path = CHECKOUT / "figures") -> Files:
    """Return the list of all figures, and the page of each figure with its picture.

    Args:
        entries: The figures; by default, all.
        stored: The folder with the pictures of trained models, as `npformer figures` writes it.
    """
    files, entries = Files(), all_entries() if entries is None else entries
    for entry in entries:
        path, animation = f"gallery/{entry.id}", stored / f"{entry.id}.gif"
        if "TR" in entry.data:
            shown = _stored_picture(files, path, entry, stored)
        else:
            drawing = entry.draw()
            shown = picture(files, path, drawing.figure, drawing.caption, entry.title)
        if animation.is_file():
            files[f"{path}.gif"] = animation.read_bytes()
        files[f"{path}.md"] = page(
            "figure",
            entry=entry,
            picture=shown,
            animated=animation.is_file(),
            lessons=map(find_lesson, entry.lessons),
            source=SOURCES[entry.source],
            numbers=" and ".join(DATA[key] for key in entry.data.split(" + ")),
        )
    pictures = {Path(path).stem: path for path in files if path.endswith((".svg", ".png"))}
    return files | {"gallery.md": page("gallery", entries=entries, sources=SOURCES, pictures=pictures)}


def _stored_picture(files: Files, path: str, entry: Entry, stored: Path) -> str:
    """Add the stored picture of a figure to the files and return it with its caption, or "" without them."""
    png, captions = stored / f"{entry.id}.png", stored / PAGE
    written = captions.read_text(encoding="utf-8") if captions.is_file() else ""
    # the paragraph behind the images in the section of the figure
    caption = re.search(rf"^## {entry.id}:.*\n\n(?:!\[.*\n\n)+(.*)", written, re.MULTILINE)
    if caption is None or not png.is_file():
        return ""
    files[f"{path}.png"] = data = png.read_bytes()
    width = round(int.from_bytes(data[16:20]) * 96 / DPI)  # 96 CSS pixels are an inch
    said = re.sub(r"\\(.)", r"\1", html.unescape(caption[1]))
    return str(templates().globals["figure"](f"{path}.png", width, said, entry.title))
