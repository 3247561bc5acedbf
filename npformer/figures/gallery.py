"""The gallery: figures written into a folder, and the page that shows them all."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from npformer.errors import UserError
from npformer.figures.entry import DATA, SOURCES, Drawing, Entry
from npformer.plots import animated_gif, save
from npformer.plots.style import write

SECONDS = 1.2  # that each frame of an animation is shown
PAGE = "README.md"

HEAD = """\
# Figures

Every figure of the documents, drawn afresh by `npformer figures` from real tensors. Rows are queries, always.

```python
from npformer.figures import Studio, draw

studio = Studio()  # trains a small model when a figure first needs one
draw("F29", studio, sentence="the dog didn't cross the road because it was too wide").figure
```
"""


def write_drawing(drawing: Drawing, entry: Entry, folder: Path, *, svg: bool = False) -> list[Path]:
    """Write a figure as PNG, as SVG too if asked, and its frames as GIF. Returns the paths.

    Errors: UserError where the folder cannot be written.
    """
    paths = [save(drawing.figure, folder / f"{entry.id}.png")]
    if svg:
        paths.append(save(drawing.figure, folder / f"{entry.id}.svg"))
    if drawing.frames:
        path = folder / f"{entry.id}.gif"
        paths.append(animated_gif(lambda frame: frame(), drawing.frames, path, seconds=SECONDS))
    return paths


def make_folder(folder: Path) -> None:
    """The folder, if it is not there. Errors: UserError where it cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{PAGE}.probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error.strerror}): give a folder that may be, with --out"
        ) from None


def write_page(entries: Sequence[Entry], captions: dict[str, str], folder: Path) -> Path:
    """The page of all figures, in the folder where they lie. captions: by id. Returns its path."""
    text = "\n".join(_page(entries, captions, {path.name for path in folder.iterdir()}))
    return write(folder / PAGE, text.encode())


def _page(entries, captions, files) -> Iterable[str]:
    yield HEAD
    yield from _legend()
    yield "| figure | what it shows | source | numbers from |"
    yield "|---|---|---|---|"
    for entry in entries:
        name = f"[{entry.id}](#{_anchor(entry)})"
        yield f"| {name} | {_plain(entry.title)} | {entry.source} | {entry.data} |"
    for entry in entries:
        yield ""
        yield from _section(entry, captions[entry.id], files)
    yield ""


def _legend() -> Iterable[str]:
    sources = ", ".join(f"{id} *{title}*" for id, title in SOURCES.items())
    data = ", ".join(f"{id} {text}" for id, text in DATA.items())
    yield f"Sources: {sources}.\n"
    yield f"Numbers from: {data}.\n"


def _section(entry: Entry, caption: str, files) -> Iterable[str]:
    yield f"## {_heading(entry)}\n"
    yield f"![{_plain(entry.title)}]({entry.id}.png)\n"
    if f"{entry.id}.gif" in files:
        yield f"![{_plain(entry.title)}, animated]({entry.id}.gif)\n"
    yield f"{_plain(caption)}\n"
    yield f'Source {entry.source}, numbers from {entry.data}. `draw("{entry.id}", studio).figure`'


def _heading(entry: Entry) -> str:
    return f"{entry.id}: {_plain(entry.title)}"


def _plain(text: str) -> str:
    """Text in which no letter is a sign of Markdown, so that <S>, * and | are seen as they are."""
    return re.sub(r"([\\`*_\[\]<>|$#])", r"\\\1", text)


def _anchor(entry: Entry) -> str:
    """The name that pages give a heading: small letters, a hyphen for each space, nothing else."""
    return re.sub(r"[^\w\- ]", "", f"{entry.id}: {entry.title}".lower()).replace(" ", "-")
