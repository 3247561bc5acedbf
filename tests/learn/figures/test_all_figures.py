"""Tests of every registered figure: it is legible, its bytes are reproducible, and the gallery shows it."""

import io
import json
import os
import re
from functools import cache

import matplotlib
import numpy as np
import pytest
from figure_cells import draw
from matplotlib.image import imread
from paths import ROOT

from npformer.errors import UserError
from npformer.learn.figures import DATA, SOURCES, all_entries, find_entry
from npformer.learn.figures.gallery import RECIPES, write_drawing, write_page
from npformer.learn.figures.trainings import recipes_as_json
from npformer.plots import text_problems
from npformer.plots.style import DPI, drawing

NIGHTLY = bool(os.environ.get("NPFORMER_NIGHTLY"))
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
def drawings(studio):
    """Return a function that draws each figure once. Those without a trained model can train none."""
    return lambda entry: draw(entry.id) if entry in UNTRAINED else draw(entry.id, studio)


@pytest.fixture(scope="module")
def written(drawings, tmp_path_factory):
    """Return a function that writes the files of a figure once, and returns their bytes by their names."""
    folder = tmp_path_factory.mktemp("figures")

    @cache
    def write(entry):
        return {path.name: path.read_bytes() for path in write_drawing(drawings(entry), entry, folder)}

    return write


def test_the_inventory_is_complete():
    assert [entry.id for entry in ENTRIES] == INVENTORY
    for entry in ENTRIES:
        assert entry.source in SOURCES
        assert set(entry.data.split(" + ")) <= set(DATA)
        assert entry.title


@every(ENTRIES)
def test_the_figure_and_its_frames_are_legible(entry, drawings):
    """Of an animation, the first two frames and the last one, and every night all of them."""
    assert text_problems(drawings(entry).figure) == []
    frames = list(drawings(entry).frames)
    shown = [frame() for frame in (frames if NIGHTLY else [*frames[:2], *frames[2:][-1:]])]
    assert len({tuple(figure.get_size_inches().round(6)) for figure in shown}) <= 1
    assert [text_problems(figure) for figure in shown] == [[]] * len(shown)


@every(ENTRIES)
def test_the_caption_is_complete_prose(entry, drawings):
    caption = drawings(entry).caption
    assert caption.endswith((".", ".)", "!"))
    assert 40 < len(caption) < 700
    assert not re.search(r"\bnan\b|None|np\.|\{|\}", caption), caption


@every(ENTRIES, often=KINDS)
def test_the_same_input_gives_the_same_bytes_and_caption(entry, drawings, written, studio, tmp_path):
    """Compare the picture, and the animation if there is one."""
    again = entry.draw(studio)
    assert again.caption == drawings(entry).caption
    files = write_drawing(again, entry, tmp_path)
    assert {path.name: path.read_bytes() for path in files} == written(entry)


def pixels(figure):
    """Return the pixels of a figure as a PNG file has them, (height, width, 3)."""
    buffer = io.BytesIO()
    with drawing():
        figure.savefig(buffer, format="rgba", dpi=DPI)
    width, height = (figure.get_size_inches() * DPI).astype(int)
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)[..., :3] / 255


@every(UNTRAINED)
def test_the_gallery_contains_the_current_picture(entry, drawings):
    """Check that figures/ holds this picture. If it does not, run `npformer figures`."""
    drawn, stored = pixels(drawings(entry).figure), imread(GALLERY / f"{entry.id}.png")[..., :3]
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


def test_the_page_of_the_gallery_lists_all_figures(gallery):
    now, stored = ((folder / "README.md").read_text(encoding="utf-8") for folder in (gallery, GALLERY))
    assert now.partition("\n## ")[0] == stored.partition("\n## ")[0]


# The gallery.


@pytest.fixture(scope="module")
def gallery(drawings, written, tmp_path_factory):
    """Return a folder with the files of two figures, and the page of all figures."""
    folder = tmp_path_factory.mktemp("gallery")
    for entry in ENTRIES:
        for name, data in written(entry).items() if entry.id in ("F01", "F44") else ():
            (folder / name).write_bytes(data)
    write_page(ENTRIES, {entry.id: drawings(entry).caption for entry in ENTRIES}, folder)
    return folder


def test_the_links_of_the_page_lead_to_its_headings(gallery):
    text = (gallery / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(#([^)]+)\)", text)
    headings = [re.sub(r"\\(.)", r"\1", line[3:]) for line in text.splitlines() if line.startswith("## ")]
    anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert links == anchors
    assert len(set(anchors)) == len(anchors)


def test_files_of_a_figure(written, drawings, tmp_path):
    still, moving = (next(entry for entry in ENTRIES if entry.id == id) for id in ("F01", "F44"))
    files = write_drawing(drawings(still), still, tmp_path, svg=True)
    assert [path.name for path in files] == ["F01.png", "F01.svg"]
    assert list(written(moving)) == ["F44.png", "F44.gif"]
    assert written(moving)["F44.gif"][:6] == b"GIF89a"


def test_a_figure_lists_its_settings_and_those_of_its_inputs():
    assert find_entry("F11").settings == {
        "sentence": "I am a student", "length": 7, "d_model": 6, "seed": 3, "bias": 0.0, "activation": "none",
    }  # fmt: skip
    assert find_entry("F27").settings["sentence"] == "Je suis étudiant"
    assert find_entry("F41").settings["n_layers"] == 1
    assert find_entry("F56").settings["kind"] == "local-p"
    assert "kind" not in find_entry("F55").settings
    with pytest.raises(TypeError, match="bias"):
        draw("F12", bias=1.0)


def test_draw_by_id():
    assert find_entry("F9") is find_entry("f9") is find_entry("F09")
    with pytest.raises(UserError, match="unknown figure 'F99': did you mean F"):
        draw("F99")
