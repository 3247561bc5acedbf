"""Tests of how the images that a terminal can show are found."""

import io
import os

import pytest

from npformer.learn.course import terminal_graphics
from npformer.learn.course.terminal_graphics import Graphics, find_graphics, has_sixel, sixel_graphics

WINDOW = os.terminal_size((100, 30))


@pytest.fixture
def answers(monkeypatch):
    """Let the terminal answer every question with the text or None that a test appends here."""
    texts = []
    monkeypatch.setattr(terminal_graphics, "ask", lambda *_: texts.pop(0))
    monkeypatch.setattr(terminal_graphics, "cell_of_window", lambda _: (7, 15))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: WINDOW)
    return texts


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-kitty"}, Graphics("kitty", (7, 15))),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, Graphics("kitty", (7, 15))),
        ({"TERM": "xterm-ghostty"}, Graphics("kitty", (7, 15))),
        ({"TERM_PROGRAM": "iTerm.app"}, Graphics("iterm2", (7, 15))),
        ({"TERM_PROGRAM": "WezTerm"}, Graphics("iterm2", (7, 15))),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "iTerm.app"}, Graphics("")),
        ({"TERM": "screen", "KITTY_WINDOW_ID": "1"}, Graphics("")),
        ({"TERM": "xterm-256color", "STY": "1.pts"}, Graphics("")),
        ({"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"}, Graphics("")),
    ],
)
def test_some_terminals_are_known_and_never_asked(answers, environment, expected):
    assert find_graphics(io.StringIO(), environment) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["\033[?62;4;22c", "\033[6;18;9t\033[?62;4;22c"], Graphics("sixel", (9, 18))),
        (["\033[?62;4;22c", ""], Graphics("sixel", (7, 15))),
        (["\033[?62;4;22c", None], Graphics("sixel", (7, 15))),
        (["\033[?62;22c"], Graphics("")),
        ([""], Graphics("")),
        ([None], None),
    ],
)
def test_other_terminals_are_asked_for_sixel(answers, given, expected):
    answers.extend(given)
    with open(os.devnull) as stream:
        assert find_graphics(stream, {"TERM": "xterm-256color"}) == expected
    assert not answers, "nothing is left unasked"


def test_the_attribute_of_sixel():
    with_it, without = ["62;4", "4;6"], ["61;6;7;14;21;22;23;24;28;32;42", "64"]
    assert all(has_sixel(f"\033[?{attributes}c") for attributes in with_it)
    assert not any(has_sixel(text) for text in ["x4c", "", *(f"\033[?{each}c" for each in without)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Graphics("sixel", (7, 15))),
        ("\033[6;20;10t\033[4;900;800t", Graphics("sixel", (10, 20))),
        ("\033[6;0;0t\033[4;480;900t", Graphics("sixel", (9, 16))),
        ("\033[4;1;1t", Graphics("sixel", (1, 1))),
        ("\033[?1;0;16S\033[?2;0;1000;900S", Graphics("sixel", (7, 15), 16, (1000, 900))),
        ("\033[?1;0;1024S\033[?2;1;0S", Graphics("sixel", (7, 15), 256)),
        ("\033[?1;0;1S", Graphics("sixel", (7, 15), 2)),
        ("\033[?1;3;0S", Graphics("sixel", (7, 15))),
    ],
)
def test_the_limits_of_sixel(text, expected):
    assert sixel_graphics(text + "\033[?62;4c", WINDOW, (7, 15)) == expected
