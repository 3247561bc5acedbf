"""Tests of the palette, fonts, saving, and the search for illegible text."""

import itertools
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import colour_vision
import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from npformer import plots
from npformer.errors import UserError
from npformer.plots import palette, save, style, text_problems
from npformer.plots.layout import array, mask_array, new_figure, sheet, words
from npformer.plots.style import drawing, literal, number


@pytest.mark.parametrize("sight", colour_vision.SIGHTS)
def test_colours_that_must_differ_are_distinguishable(sight):
    def apart(a, b, least):
        assert colour_vision.difference(a, b, sight) >= least, (a, b, sight)

    low, high = (palette.weight_map()(x) for x in (0.0, 1.0))
    for colour in (low, high):
        assert np.linalg.norm(_lab_of(colour, sight) - _lab_of(palette.COLOURS["masked"], sight)) > 20
    for a, b in itertools.combinations(("x", "padding", "masked", "white"), 2):
        apart(a, b, 20)
    for a, b in itertools.combinations("xqkvz", 2):  # the documents fix the light colours
        apart(palette.EDGES[a], palette.EDGES[b], 15)
    for a, b in itertools.combinations(palette.HEADS, 2):
        if {a, b} != set(palette.HEADS[:2]):  # the documents fix these two
            apart(a, b, 15)
    apart("#a34700", "#0b4a8f", 30)  # the two ends of the signed colour map


def _lab_of(colour, sight):
    return colour_vision.lab(colour_vision.simulate(matplotlib.colors.to_rgb(colour), sight))


def test_unknown_colours():
    assert palette.colour("q") == "#e7b8f4"
    assert palette.colour("#123456") == "#123456"
    with pytest.raises(UserError):
        palette.colour("mauvish")


def test_text_is_legible_on_every_colour():
    for background in [*palette.COLOURS.values(), *palette.HEADS, "#ffffff", "#000000"]:
        y = [colour_vision.luminance(colour) for colour in (background, palette.ink_on(background))]
        assert (max(y) + 0.05) / (min(y) + 0.05) >= 4.5, background


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.88, ".88"), (-0.4161, "−.42"), (1.0, "1.00"), (0.0, ".00"), (-0.001, ".00"), (-1.5, "−1.50"),
        (np.int64(-3), "−3"), (True, "1"), (np.float32(0.25), ".25"), (-np.inf, "−∞"), (np.inf, "∞"),
        (np.nan, "NaN"), (14, "14"),
        (10.0, "10.00"), (0.999, "1.00"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize("text", ["$x$", "costs $5 or $6", "$", r"\$x\$", r"\frac{1}^_", "$\\nonsense$"])
def test_a_literal_text_is_no_formula(text):
    """It is drawn as with parse_math=False: sign by sign, and no mistake in it is an error."""

    def pixels(drawn, **style):
        with drawing():
            figure = Figure((3, 1))
            figure.text(0.1, 0.5, drawn, **style)
            buffer = BytesIO()
            figure.savefig(buffer, format="raw")
        return buffer.getvalue()

    assert pixels(literal(text)) == pixels(text, parse_math=False)


def test_inputs_are_checked():
    for wrong in (
        lambda: array(np.zeros((2, 2), complex), "a", 2),
        lambda: array(np.zeros(3), "a", 2),
        lambda: array(np.zeros((0, 3)), "a", 2),
        lambda: array([[1], [2, 3]], "a", 2),
        lambda: array(["a"], "a", 1),
        lambda: words("two words", 2, "queries"),
        lambda: words(["a"], 2, "queries"),
        lambda: mask_array(np.ones((2, 2)), (2, 2)),
        lambda: mask_array(np.ones((2, 3), bool), (2, 2)),
        lambda: new_figure(40, 2),
        lambda: sheet(3, 3, ax=new_figure(2, 2).add_axes((0, 0, 1, 1))),
    ):
        with pytest.raises(UserError):
            wrong()
    assert mask_array(np.ones((1, 1, 1, 3), bool), (2, 3)).shape == (2, 3)


def test_the_error_when_no_font_has_chinese_characters(monkeypatch):
    monkeypatch.setattr(style, "_others", list)
    with pytest.raises(UserError, match=r"我.*Noto Sans CJK"), drawing(["我", "ab"]):
        pass


def test_a_font_that_has_the_characters_is_used(monkeypatch):
    # STIXGeneral comes with matplotlib too and has characters that DejaVu Sans lacks
    stix = [chr(c) for c in range(0x2A00, 0x2B00) if _in("STIXGeneral", c) and not _in("DejaVu Sans", c)]
    only = stix[0]
    monkeypatch.setattr(style, "_others", lambda: ["cmb10", "STIXGeneral"])
    assert style.families_for("a" + only) == ["DejaVu Sans", "STIXGeneral"]
    with drawing(only):
        figure = new_figure(2, 1)
        figure.text(0.5, 0.5, only)
    assert text_problems(figure) == []


def _in(name, code):
    return style._has(style._path(name), chr(code))


def _figure():
    with drawing():
        figure = new_figure(3, 2)
        figure.text(0.5, 0.5, "L'été à la forêt")
        figure.add_axes((0.2, 0.2, 0.5, 0.2)).plot([0, 1], marker="o")  # markers have ids in an SVG
        return figure


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, ending):
    first = save(_figure(), tmp_path / f"a.{ending}").read_bytes()
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "other", "savefig.dpi": 30}):
        second = save(_figure(), str(tmp_path / f"b.{ending}"))
    assert second.read_bytes() == first
    assert len(first) > 1000
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]


def test_files_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("a")
    (tmp_path / "folder.png").mkdir()
    for path in ("no/a.png", "file/a.png", "folder.png", "a.jpeg", "a"):
        with pytest.raises(UserError) as caught:
            save(_figure(), tmp_path / path)
        assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.png"]


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file_untouched(tmp_path):
    path = save(_figure(), tmp_path / "a.png")
    before = path.read_bytes()
    broken = _figure()
    broken.text(0, 0, "$\\nosuchthing$")
    with pytest.raises(ValueError, match="nosuchthing"):
        save(broken, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_illegible_text_is_found():
    with drawing():
        figure = new_figure(3, 2)
        figure.text(0.5, 0.5, "here")
    assert text_problems(figure) == []
    figure.text(0.5, 0.53, "there")
    figure.text(0.1, 0.1, "tiny", size=7)
    figure.text(0.9, 0.9, "outside")
    figure.text(0.1, 0.8, "$W^Q$", size=9)
    found = "\n".join(text_problems(figure))
    for part in ("'here' and 'there' overlap", "'tiny' has 7.0", "'outside' exceeds", "has 6.3 points"):
        assert part in found
    assert len(text_problems(figure)) == 4


def test_rotated_texts_overlap_only_where_they_touch():
    def two(apart):
        with drawing():
            figure = new_figure(4, 4)
            for x in (0.3, 0.3 + apart):
                figure.text(x, 0.3, "slanted words", rotation=45, rotation_mode="anchor")
        return text_problems(figure)

    assert two(0.08) == []
    assert len(two(0.02)) == 1


def test_control_characters_are_drawn_as_code_points():
    assert style.drawable(["\x03a", "é\n"]) == ["U+0003a", "é\n"]


def test_missing_glyphs_are_found():
    figure = new_figure(2, 1)
    figure.text(0.5, 0.5, "我", family="DejaVu Sans")
    assert "warning" in text_problems(figure)[0]


def test_pyplot_is_never_imported_and_npformer_needs_no_matplotlib(tmp_path):
    code = """
import sys, npformer
from npformer.cli.main import main
try:
    main(["figures", "--help"])
except SystemExit:
    assert not any(name.startswith("matplotlib") for name in sys.modules)
import numpy as np
from npformer import plots
from npformer.plots.board import Board
figure = plots.attention_map(np.eye(3), list("abc"), list("abc"))
plots.save(figure, sys.argv[1] + "/a.png"); plots.save(figure, sys.argv[1] + "/a.svg")
plots.animated_gif(lambda i: plots.cell_grid(np.eye(2)), range(2), sys.argv[1] + "/a.gif")
plots.curves([1, 2], labels=["a"]), Board(), plots.text_problems(figure)
assert "matplotlib.pyplot" not in sys.modules
"""
    strict = ("-W", "error", "-W", "ignore::DeprecationWarning")  # an older matplotlib with a newer pyparsing
    subprocess.run([sys.executable, *strict, "-c", code, str(tmp_path)], check=True)


def test_only_plots_and_figures_import_matplotlib():
    package = Path(palette.__file__).parents[1]
    others = [path for path in package.rglob("*.py") if path.parent.name not in ("plots", "figures")]
    imports = re.compile(r"^\s*(import|from) matplotlib", re.M)
    found = [path.name for path in others if imports.search(path.read_text("utf-8"))]
    assert found == [], "npformer.plots has what they need: from npformer.plots import Figure"
    assert isinstance(_figure(), plots.Figure)


def test_the_settings_of_the_caller_are_not_changed():
    with matplotlib.rc_context({"font.size": 31}):
        before = dict(matplotlib.rcParams)
        _figure()
        assert dict(matplotlib.rcParams) == before
