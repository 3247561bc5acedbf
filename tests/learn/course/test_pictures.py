"""Tests of pictures in terminals, plain scripts and notebooks."""

import base64
import re
import sys
import types

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.learn.course import show_figure
from npformer.learn.course.terminal import escape_sequence, protocol
from npformer.plots import Figure, cell_grid


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "iTerm.app"}, ""),
        ({"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}, ""),
        ({}, ""),
    ],
)
def test_which_terminals_show_pictures(environment, expected):
    assert protocol(environment) == expected


def test_the_escape_sequences_contain_the_picture():
    png = bytes(range(256)) * 40
    kitty = escape_sequence(png, "kitty")
    parts = re.findall(r"\033_G([^;]*);([^\033]*)\033\\", kitty)
    assert base64.b64decode("".join(data for _, data in parts)) == png
    assert [settings.split("m=")[1] for settings, _ in parts] == ["1"] * (len(parts) - 1) + ["0"]
    assert all(len(data) <= 4096 for _, data in parts)
    iterm = escape_sequence(png, "iterm2")
    assert iterm.startswith("\033]1337;File=inline=1;size=10240;")
    assert base64.b64decode(iterm.split(":")[1].split("\a")[0]) == png


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


def test_figures_that_cannot_be_saved_are_a_users_error(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lesson_figures").write_text("a file in the way")
    with pytest.raises(UserError, match="lesson_figures"):
        show_figure(cell_grid(np.eye(2)), "09_cells")
