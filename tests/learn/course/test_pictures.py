"""Tests of pictures in terminals, plain scripts and notebooks."""

import re
import sys
import types

import numpy as np
from rich.cells import cell_len
from rich.console import Console

from npformer.learn.course import show_figure
from npformer.learn.course.cell_picture import cell_picture
from npformer.learn.course.pictures import open_file
from npformer.learn.figures.course_map import course_map
from npformer.plots import Figure, Grid, attention_grid, cell_grid, cell_product, curves, softmax_panels


def shown(figure, columns=80, rows=20):
    """Return the lines of a picture, and a function that returns the style at a place."""
    lines = cell_picture(figure, columns, rows).split("\n")
    return [line.plain for line in lines], lambda row, column: lines[row].get_style_at_offset(
        Console(), column
    )


def test_a_matrix_is_shown_as_coloured_cells_with_numbers_and_words():
    words = ["the", "animal", "zebra"]
    weights = np.array([[0.75, 0.25, 0], [0.5, 0.5, 0], [0, 0, 1]])
    figure = softmax_panels(weights, weights, words, words, numbers=True)
    lines, style = shown(figure, 100, 24)
    assert len(lines) <= 24
    assert {cell_len(line) for line in lines} == {cell_len(lines[0])}
    assert cell_len(lines[0]) <= 100
    text = "\n".join(lines)
    for word in ("after the softmax", "animal", "zebra", ".75", "1.00"):
        assert word in text
    row = next(row for row, line in enumerate(lines) if ".75" in line)
    dark, light = (style(row, lines[row].rindex(number)).bgcolor.triplet for number in (".75", ".25"))
    assert sum(dark) < sum(light)


def test_the_texts_of_a_picture_do_not_overlap():
    name = "a name that is longer than the picture"
    figure = curves(np.eye(3), labels=["$x_i$", "$\\bar{x}$", "√dₖ"], ylabel=name)
    lines, _ = shown(figure, 60, 12)
    text = "\n".join(lines)
    assert "xᵢ" in text
    assert name in lines[0], "it stands above the axis"
    assert len(lines) <= 12
    assert {cell_len(line) for line in lines} == {cell_len(lines[0])}
    tiny, _ = shown(figure, 1, 1)
    assert [cell_len(line) for line in tiny] == [1]


def test_numbers_stay_in_their_cells_and_a_low_picture_becomes_higher_if_its_texts_need_it():
    ids = np.array([[4, 115, 343], [15, 148, 309], [23, 7, 22]])
    plain = {"numbers": True, "colour": "plain", "edge": "x"}
    words = [f"word{number}" for number in range(9)]
    four_heads = attention_grid(np.ones((1, 4, 9, 9)) / 9, words, words)
    (low, _), (high, _) = (shown(four_heads, 80, rows) for rows in (13, 40))
    assert len(high) > 1.5 * len(low), "not all names have room in fewer lines"
    assert [sum("head 2" in line for line in lines) for lines in (low, high)] == [0, 1]
    parts = [Grid(ids, **plain), "→", Grid(np.full((3, 3), -3.43), **plain)]
    lines, _ = shown(cell_product(parts), 36, 40)
    text = "\n".join(lines)
    assert [line.replace("▄", " ").split()[:3] for line in lines if "115" in line] == [["4", "115", "343"]]
    assert "." not in text, "some of the fractions have no room, so none of them is shown"


def test_letters_differ_from_their_ground():
    """The numbers in the dark marks of the map are white, and must not be moved onto the white paper."""
    lines, style = shown(course_map(), 80, 36)
    for row, line in enumerate(lines):
        for found in re.finditer(r"[^▄ ]", line):
            letter = style(row, found.start())
            ink, ground = sum(letter.color.triplet), sum(letter.bgcolor.triplet)
            assert abs(ink - ground) > 150, (row, line)


def test_a_file_is_opened_with_the_systems_program(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name == "xdg-open" else None)
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: opened.append(command))
    assert open_file(tmp_path / "a.png") == f"opened {tmp_path / 'a.png'}"
    assert opened == [["/bin/xdg-open", tmp_path / "a.png"]]
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert open_file(tmp_path / "a.png").startswith("no program opens pictures here")
    assert len(opened) == 1


def test_a_plain_script_saves_its_figures_and_names_them(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    figure = cell_grid(np.eye(2))
    assert isinstance(figure, Figure)
    show_figure(figure, "09_cells", "two cells")
    assert capsys.readouterr().out == "figure lesson_figures/09_cells.png: two cells\n"
    assert (tmp_path / "lesson_figures" / "09_cells.png").read_bytes().startswith(b"\x89PNG")


def test_a_notebook_displays_the_figure(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = []
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    display = types.SimpleNamespace(display=lambda data, raw: shown.append((data, raw)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    show_figure(cell_grid(np.eye(2)), "09_cells", "two cells")
    [(data, raw)] = shown
    assert raw
    assert data["image/png"].startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == []
