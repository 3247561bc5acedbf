"""Every figure that is registered, whoever drew it: legible, the same bytes each time, from the palette."""

import hashlib
import re
from pathlib import Path

import pytest

from npformer.errors import UserError
from npformer.figures import DATA, SOURCES, all_entries, draw
from npformer.figures.gallery import make_folder, write_drawing, write_page
from npformer.plots import save, text_problems

ENTRIES = all_entries()
INVENTORY = [f"F{number:02}" for number in range(1, 61)]

by_id = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)


@pytest.fixture(scope="module")
def drawings(studio):
    """Each drawing, made once."""
    made = {}

    def of(entry):
        if entry.id not in made:
            made[entry.id] = entry.draw(studio)
        return made[entry.id]

    return of


def test_the_inventory_is_complete():
    assert [entry.id for entry in ENTRIES] == INVENTORY
    for entry in ENTRIES:
        assert entry.source in SOURCES
        assert set(entry.data.split(" + ")) <= set(DATA)
        assert entry.title


@by_id
def test_it_can_be_read(entry, drawings):
    assert text_problems(drawings(entry).figure) == []


@by_id
def test_the_caption_is_one_a_teacher_would_sign(entry, drawings):
    caption = drawings(entry).caption
    assert caption.endswith((".", ".)", "!"))
    assert 40 < len(caption) < 700
    assert not re.search(r"\bnan\b|None|np\.|\{|\}", caption), caption


@by_id
def test_the_same_input_gives_the_same_bytes(entry, drawings, studio, tmp_path):
    first = save(drawings(entry).figure, tmp_path / "first.png").read_bytes()
    assert save(entry.draw(studio).figure, tmp_path / "second.png").read_bytes() == first


@by_id
def test_frames_can_be_read_and_are_of_one_size(entry, drawings):
    figures = [frame() for frame in drawings(entry).frames]
    assert len({tuple(figure.get_size_inches().round(6)) for figure in figures}) <= 1
    for figure in (*figures[:2], *figures[-1:]):
        assert text_problems(figure) == []


def test_the_animations(drawings):
    """Decoding step by step, attention flowing, and a map over the steps of training."""
    moving = {entry.id for entry in ENTRIES if len(drawings(entry).frames) > 1}
    assert {"F07", "F44", "F45", "F51"} <= moving


# The gallery.


@pytest.fixture(scope="module")
def gallery(drawings, tmp_path_factory):
    """A folder with some of the figures, and the page of them all."""
    folder = tmp_path_factory.mktemp("gallery")
    for entry in ENTRIES:
        if entry.id in ("F01", "F44"):
            write_drawing(drawings(entry), entry, folder, svg=True)
    write_page(ENTRIES, {entry.id: drawings(entry).caption for entry in ENTRIES}, folder)
    return folder


def test_the_page_shows_every_figure_once(gallery):
    text = (gallery / "README.md").read_text(encoding="utf-8")
    for entry in ENTRIES:
        assert text.count(f"\n## {entry.id}: ") == 1
        assert text.count(f"({entry.id}.png)") == 1
        assert text.count(f'`draw("{entry.id}", studio).figure`') == 1
        assert len(re.findall(rf"^\| \[{entry.id}\]", text, re.M)) == 1
    assert text.count(".gif)") == 1  # that of F44, which is in this folder


def test_the_links_of_the_page_lead_to_its_headings(gallery):
    text = (gallery / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(#([^)]+)\)", text)
    headings = [re.sub(r"\\(.)", r"\1", line[3:]) for line in text.splitlines() if line.startswith("## ")]
    anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert links == anchors
    assert len(set(anchors)) == len(anchors)


def test_captions_are_not_taken_for_markdown(gallery, drawings):
    text = (gallery / "README.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith(("#", "!", "`", "|", "Source", "Numbers")) and "draw(" not in line:
            assert not re.search(r"(?<!\\)[<>$]", line), line


def test_files_of_a_figure(gallery):
    names = {path.name for path in gallery.iterdir()}
    assert names == {"F01.png", "F01.svg", "F44.png", "F44.svg", "F44.gif", "README.md"}
    assert (gallery / "F44.gif").read_bytes()[:6] == b"GIF89a"


def test_animations_are_the_same_bytes_too(drawings, studio, gallery, tmp_path):
    entry = next(entry for entry in ENTRIES if entry.id == "F44")
    write_drawing(entry.draw(studio), entry, tmp_path)
    assert digest(tmp_path / "F44.gif") == digest(gallery / "F44.gif")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UserError, match="cannot be written"):
        make_folder(tmp_path / "file")
    with pytest.raises(UserError, match="cannot be written"):
        make_folder(Path("/proc/figures"))


# draw(id).


def test_draw_by_id(studio):
    with pytest.raises(UserError, match="there is no figure 'F9': did you mean F"):
        draw("F9", studio)
