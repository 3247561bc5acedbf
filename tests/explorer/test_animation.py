"""The script that draws the README's animation of the explorer."""

import re

import explorer_animation
import pytest
from paths import ROOT
from PIL import Image
from word_translator import word_translator

from npformer.explorer import explore

FILE = ROOT / "figures" / "explorer.gif"


@pytest.mark.browser
def test_the_scenes_can_be_played(chromium, tmp_path, monkeypatch):
    """The page of another model has the same buttons and steps, and each scene is another picture."""
    html = explore(word_translator(), "a cat sees it").html
    monkeypatch.setattr(explorer_animation, "SECONDS", 0.1)
    pictures = explorer_animation.frames(chromium, html)
    assert 8 <= len(pictures) <= 12
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)
    explorer_animation.save(pictures, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as animation:
        assert (animation.n_frames, animation.size) == (len(pictures), pictures[0].size)


def test_the_animation_of_the_readme_has_the_frames_of_the_script():
    width, height = explorer_animation.SIZE.values()
    with Image.open(FILE) as animation:
        assert animation.size == (width, height + explorer_animation.CAPTION)
        assert 8 <= animation.n_frames <= 12
    assert width <= 1200
    assert FILE.stat().st_size <= 1.5e6
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"!\[[^]]{80,}\]\(figures/explorer\.gif\)", text)) == 1
