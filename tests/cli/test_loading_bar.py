"""The progress bar of a model that is read: after a second, and only on a terminal."""

import io
import sys

import pytest
from hugging_face_folders import GPT2, gpt2_tensors, write_folder

from npformer.cli import loading_bar as module
from npformer.cli.loading_bar import loading_bar
from npformer.cli.main import main


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "seconds", "is_shown"),
    [(Terminal, 1.5, True), (Terminal, 0.5, False), (io.StringIO, 1.5, False)],
)
def test_the_bar_appears_on_a_terminal_after_a_second(stream, seconds, is_shown, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream())
    times = iter([10.0, 10.0 + seconds, 10.0 + seconds])
    with loading_bar(clock=times.__next__) as progress:
        progress(500, 2000)
        progress(2000, 2000)
    assert ("loading" in sys.stderr.getvalue()) == is_shown
    assert is_shown or sys.stderr.getvalue() == ""


def test_a_command_shows_it_for_a_folder(tmp_path, monkeypatch):
    write_folder(tmp_path / "hub", GPT2, gpt2_tensors())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "DELAY", -1)
    monkeypatch.setattr(sys, "stderr", Terminal())
    main(["generate", "--model", str(tmp_path / "hub"), "a man"])
    assert "loading" in sys.stderr.getvalue()
