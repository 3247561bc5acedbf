"""Tests of figures in terminals: their bytes, their places on the screen, and terminals that show none."""

import base64
import io
import re

import numpy as np
import pytest
from image_screen import ImageScreen
from rich.console import Console
from typing_reader import ROWS, TerminalText, set_terminal, step_with

from npformer.learn.course import terminal_pictures
from npformer.learn.course.terminal_graphics import Graphics
from npformer.learn.course.terminal_pictures import PictureTerminal, image_lines, png_sequence
from npformer.plots import cell_grid, save
from npformer.plots.composition import picture
from npformer.plots.style import DPI

SIXEL_TERMINAL = {
    b"\033[16t": b"\033[6;20;10t",
    b"\033[?1;1;0S": b"\033[?1;0;256S",
    b"\033[c": b"\033[?62;4;22c",
}


@pytest.fixture(scope="module")
def figure():
    return cell_grid(np.arange(40.0).reshape(10, 4), numbers=True, shade=True)


@pytest.fixture(scope="module")
def saved(figure, tmp_path_factory):
    return save(figure, tmp_path_factory.mktemp("figure") / "a.png")


def console(monkeypatch, file=None, columns=80, rows=24, **environment):
    """Return a console on a file with these environment variables."""
    set_terminal(monkeypatch, **environment)
    return Console(file=file or TerminalText(), width=columns, height=rows)


@pytest.mark.parametrize("protocol", ["sixel", "kitty", "iterm2"])
@pytest.mark.parametrize(
    ("columns", "rows", "cell"), [(80, 24, (10, 20)), (100, 30, (7, 15)), (80, 60, (9, 17))]
)  # the last has room below
def test_text_around_an_image_is_not_overwritten(figure, saved, protocol, columns, rows, cell):
    lines = image_lines(figure, saved, Graphics(protocol, cell), columns, rows - 2)
    assert len(lines) <= rows - 2
    for below in (True, False):  # the image leaves the cursor below it, or in its last band
        screen = ImageScreen(rows, cell, below=below)
        for before in (3, rows):  # the screen has room for the image, or it scrolls
            texts = [f"text {index}" for index in range(before)]
            screen.feed("".join(f"{line}\n" for line in [*texts, *lines, "caption"]))
            image = screen.images[-1]
            assert screen.lines[image.line - before : image.line] == texts
            assert not any(screen.lines[image.line : image.line + image.height])
            assert screen.lines[image.line + len(lines) : -1] == ["caption"]


@pytest.mark.parametrize(
    ("columns", "rows", "cell"),
    [(80, 24, (10, 20)), (100, 30, (7, 15)), (30, 40, (10, 20)), (80, 12, (7, 15)), (200, 60, (10, 20))],
)
def test_an_image_of_sixel_fits_and_shows_the_figure(figure, saved, columns, rows, cell):
    [*_, last] = image_lines(figure, saved, Graphics("sixel", cell), columns, rows)
    screen = ImageScreen(rows, cell, below=False)
    screen.feed(last)
    pixels = screen.images[0].pixels
    height, width = pixels.shape[:2]
    assert width <= columns * cell[0]
    assert height <= (rows - 1) * cell[1]
    high = figure.get_size_inches()[1]
    np.testing.assert_allclose(width / height, np.divide(*figure.get_size_inches()), rtol=0.01)
    assert height <= DPI * high
    bound = min(columns * cell[0] / width, (rows - 1) * cell[1] / height, DPI * high / height)
    assert bound < 1 + (cell[1] + 6) / height, "it is as large as it may be, but for a line and a band"
    expected = np.asarray(picture(figure, height / high * (1 + 1e-9)))
    assert expected.shape == pixels.shape
    assert np.abs(pixels * 2.55 - expected).mean() < 1


def test_the_escape_sequences_contain_the_file():
    png = bytes(range(256)) * 40
    kitty = png_sequence(png, "kitty", 7)
    parts = re.findall(r"\033_G([^;]*);([^\033]*)\033\\", kitty)
    assert base64.b64decode("".join(data for _, data in parts)) == png
    assert [settings.split("m=")[1] for settings, _ in parts] == ["1"] * (len(parts) - 1) + ["0"]
    assert parts[0][0] == "a=T,f=100,r=7,m=1"
    assert all(len(data) <= 4096 for _, data in parts)
    iterm = png_sequence(png, "iterm2", 7)
    assert iterm.startswith("\033]1337;File=inline=1;size=10240;height=7:")
    assert base64.b64decode(iterm.split(":")[1].split("\a")[0]) == png


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        (TerminalText(), {"TERM": "dumb"}),
        (TerminalText(), {"NO_COLOR": "1"}),
        (TerminalText(), {"NO_COLOR": "1", "KITTY_WINDOW_ID": "1"}),
        (TerminalText(), {"rows": 8}),
        (io.StringIO(), {}),
        (io.StringIO(), {"FORCE_COLOR": "1", "KITTY_WINDOW_ID": "1"}),
    ],
)
def test_places_without_pictures_are_not_asked(monkeypatch, figure, saved, file, settings):
    monkeypatch.setattr(terminal_pictures, "find_graphics", None)
    out = console(monkeypatch, file, **settings)
    assert PictureTerminal(out).lines(figure, saved, below=2) == []
    assert file.getvalue() == ""


def test_a_terminal_is_asked_until_it_was_free_to_answer(monkeypatch, figure, saved):
    found = [None, Graphics("sixel")]
    monkeypatch.setattr(terminal_pictures, "find_graphics", lambda *_: found.pop(0))
    terminal = PictureTerminal(console(monkeypatch))
    shown = [terminal.lines(figure, saved, below=1) for _ in range(3)]
    assert "▄" in shown[0][0], "the reader is typing"
    assert "\033P0;1q" in shown[1][-1]
    assert shown[1] == shown[2], "and it is not asked again"


@pytest.mark.parametrize("command", [["attention", "a man", "--model", "en-de"], ["masks", "a man"]])
def test_commands_that_draw_show_their_pictures(command, screens):
    first, opened, second, *_ = screens(*command, typed=["o", "", "q"])
    assert first.count("▄") > 300
    assert re.search(r"^wrote (\S+png)\n(.*\n)*\1\n", first, re.MULTILINE)
    assert "Enter: more · o opens the file · q quit" in first
    assert "no program opens pictures here" in opened
    assert "▄" in second


def test_a_lesson_shows_images_of_sixel_in_a_terminal_that_answers(start):
    lesson = start("-m", "npformer", "lesson", "0.2", answers=SIXEL_TERMINAL)
    lesson.read()
    lesson.type(step_with("0.2", "00_dw"))
    screen = ImageScreen(ROWS, below=False)
    lesson.type()
    screen.feed(lesson.raw)
    [image] = screen.images
    assert image.pixels.shape[1] > 600
    assert not any(screen.lines[image.line : image.line + image.height])
    assert "→ grids" in screen.lines[image.line - 1]
    assert "figure lesson_figures/00_" in screen.lines[image.line + image.height + 1]


def test_an_answer_that_comes_too_late_is_no_command(screens):
    _, shown, _ = screens("lesson", "0.2", typed=["", "\033[?62;4;22cs rng", "q"])[1:]
    assert "rng Generator" in shown
    assert "is not a command" not in shown
