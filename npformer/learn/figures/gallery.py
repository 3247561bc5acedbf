"""The gallery: write figures into a folder, and a page that shows them all."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from npformer.escaping import markdown
from npformer.learn.figures.registry import DATA, SOURCES, Drawing, Entry
from npformer.plots import animated_gif, save
from npformer.plots.style import write

SECONDS = 1.2  # the time for which a frame of an animation is shown
PAGE = "README.md"
RECIPES = "recipes.json"  # the settings of the trainings that the figures show

HEAD = """\
# Figures

All figures of the source documents, and figures of the course, drawn by `npformer figures` from real tensors.
In every matrix of attention weights the rows are queries and the columns are keys.

The functions that draw them are in `npformer/learn/figures/`, in files that are named after their figures:
`f10_to_f17_masked_attention.py`, for example, draws F14.

```python
from npformer.learn.figures import Studio, draw

studio = Studio()  # trains a small model when a figure needs one for the first time
draw("F29", studio, sentence="the dog didn't cross the road because it was too wide").figure
```
"""


def write_drawing(drawing: Drawing, entry: Entry, folder: Path, *, svg: bool = False) -> list[Path]:
    """Write a figure as PNG, also as SVG if asked, and its frames as GIF, and return the paths.

    Args:
        drawing, entry: The figure, and its entry in the registry, which names the files.
        folder, svg: The folder, and whether to write an SVG file too.

    Raises:
        UserError: If the folder cannot be written.
    """
    paths = [save(drawing.figure, folder / f"{entry.id}.png")]
    if svg:
        paths.append(save(drawing.figure, folder / f"{entry.id}.svg"))
    if drawing.frames:
        path = folder / f"{entry.id}.gif"
        paths.append(animated_gif(lambda frame: frame(), drawing.frames, path, seconds=SECONDS))
    return paths


def write_page(entries: Sequence[Entry], captions: dict[str, str], folder: Path) -> Path:
    """Write the page of all figures into their folder and return its path.

    Args:
        entries, captions: The figures, and the caption of each by its id.
        folder: The folder.
    """
    text = "\n".join(_page(entries, captions, {path.name for path in folder.iterdir()}))
    return write(folder / PAGE, text.encode())


def write_recipes(recipes: Mapping[str, Any], folder: Path) -> Path:
    """Write the settings of the trainings beside the figures and return the path."""
    return write(folder / RECIPES, (json.dumps(recipes, indent=1, sort_keys=True) + "\n").encode())


def _page(entries: Sequence[Entry], captions: Mapping[str, str], files: set[str]) -> Iterable[str]:
    yield HEAD
    sources = ", ".join(f"{id} is *{title}*" for id, title in SOURCES.items())
    yield f"Sources: {sources}.\n"
    data = ", ".join(f"{id} is {text}" for id, text in DATA.items())
    yield f"Numbers from: {data}.\n"
    yield "| figure | what it shows | source | numbers from |"
    yield "|---|---|---|---|"
    for entry in entries:
        name = f"[{entry.id}](#{_anchor(entry)})"
        yield f"| {name} | {markdown(entry.title)} | {entry.source} | {entry.data} |"
    for entry in entries:
        yield ""
        yield from _section(entry, captions[entry.id], files)
    yield ""


def _section(entry: Entry, caption: str, files: set[str]) -> Iterable[str]:
    yield f"## {(f'{entry.id}: {markdown(entry.title)}')}\n"
    yield f"![{markdown(entry.title)}]({entry.id}.png)\n"
    if f"{entry.id}.gif" in files:
        yield f"![{markdown(entry.title)}, animated]({entry.id}.gif)\n"
    yield f"{markdown(caption)}\n"
    yield f'Source: {entry.source}. Numbers from: {entry.data}. `draw("{entry.id}", studio).figure`'


def _anchor(entry: Entry) -> str:
    """Return the anchor that pages give a heading: small letters, a hyphen for each space, nothing else."""
    return re.sub(r"[^\w\- ]", "", f"{entry.id}: {entry.title}".lower()).replace(" ", "-")
