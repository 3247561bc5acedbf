"""The pieces of the documents of the site."""

import pytest

from npformer.learn.site.markdown import LARGEST, drawing_of, picture, templates, text
from npformer.plots import attention


def test_only_code_is_markup_in_a_text():
    assert text("a `x_1` b_2 *c* $d$ [e] <S>\nf") == r"a `x_1` b_2 \*c\* \$d\$ \[e\] \<S\> f"


def test_a_block_of_code_keeps_its_lines_and_shows_control_characters():
    code = templates().globals["code"]
    assert code("\nx = 1\n\n\ty\x1b\n").splitlines()[-4:] == ["x = 1", "", "\ty\\x1b", "`````"]


def test_what_is_folded_has_an_escaped_title():
    shown = templates().globals["folded"]("a < b", "**text**", "answer")
    assert '<details class="answer"><summary>a &lt; b</summary>' in shown
    assert "\n\n**text**\n\n" in shown
    assert shown.count("```{raw} html") == 2


@pytest.fixture
def figure():
    return attention([[0.25, 0.75]], ["a"], ["b", "c"])


def test_a_drawing_is_svg_with_the_same_bytes_every_time(figure):
    assert drawing_of(figure).startswith(b"<?xml")
    assert drawing_of(figure) == drawing_of(figure)
    assert len(drawing_of(figure)) < LARGEST


def test_a_picture_whose_caption_speaks_of_dark_cells_is_not_inverted(figure):
    files = {}
    assert ":figclass: inverted" in picture(files, "a/b", figure, "The weights")
    assert list(files) == ["a/b.svg"]
    assert ":figclass: as-drawn" in picture(files, "a/c", figure, "Dark cells are padding")
    assert ':alt: "d # \\"e\\""' in picture(files, "a/c", figure, "", 'd # "e"')
