"""The gallery: a page for each figure, with its caption, its code and the lessons to which it belongs.

Figures without a trained model are drawn when the site is built. The others need minutes of training, so
their pictures are those of figures/ in a checkout. Where this folder is missing, a page says how to draw its
figure.
"""

import html
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from npformer.learn.course.lesson import find_lesson
from npformer.learn.figures import DATA, SOURCES, Entry, Studio, all_entries
from npformer.learn.figures.gallery import PAGE
from npformer.learn.site.guide_pages import CHECKOUT
from npformer.learn.site.markdown import FENCE, Files, page, picture, quoted, shown_picture
from npformer.plots.style import DPI


def gallery_pages(entries: Sequence[Entry] | None = None, *, stored: Path = CHECKOUT / "figures") -> Files:
    """Return the list of all figures, and the page of each figure with its picture.

    Args:
        entries: The figures; by default, all.
        stored: The folder with the pictures of trained models, as `npformer figures` writes it.
    """
    files, captions = Files(), _captions(stored / PAGE)
    order = list(SOURCES)
    ranked = sorted(
        all_entries() if entries is None else entries, key=lambda each: (order.index(each.source), each.id)
    )
    for entry in ranked:
        _add_figure(entry, stored, captions, files)
    pictures = {Path(path).stem: path for path in files if path.endswith((".svg", ".png"))}
    groups = [(SOURCES[source], list(group)) for source, group in groupby(ranked, lambda each: each.source)]
    paths = [f"gallery/{entry.id}" for entry in ranked]
    return files | {"gallery.md": page("gallery", groups=groups, pictures=pictures, paths=paths)}


def _captions(file: Path) -> dict[str, str]:
    """Return the captions of the page of figures/ by the figures' ids: the paragraph behind the images."""
    sections = file.read_text(encoding="utf-8").split("\n## ")[1:] if file.is_file() else []
    captions = {}
    for section in sections:
        paragraphs = [each for each in section.split("\n\n")[1:] if not each.startswith("![")]
        captions[section.partition(":")[0]] = re.sub(r"\\(.)", r"\1", html.unescape(paragraphs[0])).strip()
    return captions


def _add_figure(entry: Entry, stored: Path, captions: Mapping[str, str], files: Files) -> None:
    """Add the page of a figure to the files, and its picture."""
    path, png, shown, animation = f"gallery/{entry.id}", stored / f"{entry.id}.png", "", ""
    if "TR" not in entry.data:
        drawing = entry.draw(Studio())
        shown = picture(files, path, drawing.figure, drawing.caption, entry.title)
    elif png.is_file() and entry.id in captions:
        files[f"{path}.png"] = data = png.read_bytes()
        width = round(int.from_bytes(data[16:20]) * 96 / DPI)  # 96 CSS pixels are an inch
        shown = shown_picture(f"{path}.png", width, captions[entry.id], entry.title)
        if (moving := png.with_suffix(".gif")).is_file():
            files[f"{path}.gif"] = moving.read_bytes()
            alt = quoted(f"{entry.title}, animated")
            animation = f"{FENCE}{{image}} /{path}.gif\n:alt: {alt}\n:loading: lazy\n{FENCE}"
    settings = {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
        for name, value in entry.settings.items()
    }
    files[f"{path}.md"] = page(
        "figure",
        entry=entry,
        picture=shown,
        animation=animation,
        lessons=[find_lesson(number) for number in entry.lessons],
        settings=settings,
        given="".join(f", {name}={value}" for name, value in list(settings.items())[:1]),
        source=SOURCES[entry.source],
        numbers=" and ".join(DATA[key] for key in entry.data.split(" + ")),
        file=Path(inspect.getsourcefile(entry.function) or "").relative_to(CHECKOUT).as_posix(),
        line=inspect.getsourcelines(entry.function)[1],
    )
