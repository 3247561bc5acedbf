"""Tests of every registered figure: it is legible, its bytes are reproducible, and the gallery shows it."""

import json
import re
from functools import cache

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread
from paths import ROOT

from npformer.errors import UserError
from npformer.learn.figures import DATA, SOURCES, Studio, all_entries, draw
from npformer.learn.figures.gallery import RECIPES, write_drawing, write_page
from npformer.learn.figures.trainings import recipes_as_json
from npformer.plots import save, text_problems

ENTRIES = all_entries()
UNTRAINED = [entry for entry in ENTRIES if "TR" not in entry.data]
GALLERY = ROOT / "figures"
DRAWN_WITH = "3.11."  # the matplotlib that drew the gallery
INVENTORY = [f"F{number:02}" for number in range(1, 68)]
KINDS = ("F01", "F12", "F16", "F25", "F44", "F47")  # boxes, cells, heat maps, curves, an animation, bars


def every(entries, often=INVENTORY):
    """Return a decorator that runs a test for each figure: those of `often` in every run, others at night."""
    cases = [
        pytest.param(entry, id=entry.id, marks=() if entry.id in often else pytest.mark.nightly)
        for entry in entries
    ]
    return pytest.mark.parametrize("entry", cases)


@pytest.fixture(scope="module")
def no_models(tmp_path_factory):
    """Return a folder in which the figures without a trained model would train one."""
    return tmp_path_factory.mktemp("none") / "models"


@pytest.fixture(scope="module")
def drawings(studio, no_models):
    """Return a function that draws each figure once."""
    return cache(lambda entry: entry.draw(Studio(folder=no_models) if entry in UNTRAINED else studio))


@pytest.fixture(scope="module")
def pictures(drawings, tmp_path_factory):
    """Return a function that writes the file of each drawing once."""
    folder = tmp_path_factory.mktemp("pictures")
    return cache(lambda entry: save(drawings(entry).figure, folder / f"{entry.id}.png"))


def test_the_inventory_is_complete():
    assert [entry.id for entry in ENTRIES] == INVENTORY
    for entry in ENTRIES:
        assert entry.source in SOURCES
        assert set(entry.data.split(" + ")) <= set(DATA)
        assert entry.title


@every(ENTRIES)
def test_the_figure_and_its_frames_are_legible(entry, drawings):
    assert text_problems(drawings(entry).figure) == []
    frames = [frame() for frame in drawings(entry).frames]
    assert len({tuple(figure.get_size_inches().round(6)) for figure in frames}) <= 1
    for figure in (*frames[:2], *frames[-1:]):
        assert text_problems(figure) == []


@every(ENTRIES)
def test_the_caption_is_complete_prose(entry, drawings):
    caption = drawings(entry).caption
    assert caption.endswith((".", ".)", "!"))
    assert 40 < len(caption) < 700
    assert not re.search(r"\bnan\b|None|np\.|\{|\}", caption), caption


@every(ENTRIES, often=KINDS)
def test_the_same_input_gives_the_same_bytes_and_caption(entry, drawings, studio, tmp_path):
    """Compare the picture, and the animation if there is one."""
    again = entry.draw(studio)
    assert again.caption == drawings(entry).caption
    files = []
    for number, drawing in enumerate((drawings(entry), again)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        files.append({path.name: path.read_bytes() for path in write_drawing(drawing, entry, folder)})
    assert files[0] == files[1]


def test_a_figure_without_a_trained_model_trains_none(drawings, no_models):
    for entry in UNTRAINED:
        drawings(entry)
    assert not no_models.exists()


@every(UNTRAINED)
def test_the_gallery_contains_the_current_picture(entry, pictures):
    """Check that figures/ holds this picture. If it does not, run `npformer figures`."""
    drawn, stored = (imread(path)[..., :3] for path in (pictures(entry), GALLERY / f"{entry.id}.png"))
    if matplotlib.__version__.startswith(DRAWN_WITH):
        assert drawn.shape == stored.shape
        assert np.abs(drawn - stored).max() < 0.25  # the difference of white and black is 1
    else:  # another version of matplotlib draws letters with other shapes
        np.testing.assert_allclose(drawn.shape, stored.shape, rtol=0.05)
        np.testing.assert_allclose(drawn.mean((0, 1)), stored.mean((0, 1)), atol=0.02)


@every(UNTRAINED)
def test_the_page_of_the_gallery_has_the_current_caption(entry, gallery):
    now, stored = ((folder / "README.md").read_text(encoding="utf-8") for folder in (gallery, GALLERY))
    assert section(now, entry) == section(stored, entry) != ""


def test_the_pictures_of_trained_models_are_from_the_present_recipe():
    """Check the corpus and all settings. If this fails, run `npformer figures`, which trains again."""
    recorded = json.loads((GALLERY / RECIPES).read_text(encoding="utf-8"))
    assert recorded == json.loads(json.dumps(recipes_as_json()))


def section(page, entry):
    """Return the part of the page about one figure."""
    return page.partition(f"\n## {entry.id}: ")[2].partition("\n## ")[0]


def test_some_figures_are_animations(drawings):
    """Check that decoding, attention flow and a heat map during training are animations."""
    moving = {entry.id for entry in ENTRIES if len(drawings(entry).frames) > 1}
    assert {"F07", "F44", "F45", "F51"} <= moving


# The gallery.


@pytest.fixture(scope="module")
def gallery(drawings, tmp_path_factory):
    """Return a folder with some of the figures, and the page of all figures."""
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


def test_draw_by_id(studio):
    with pytest.raises(UserError, match="unknown figure 'F9': did you mean F"):
        draw("F9", studio)
