"""Tests of questions to the terminal: one that answers, one that does not, and one that is slow."""

import io
import os
import subprocess
import sys

import pytest
from pseudo_terminal import fcntl, pty, termios

from npformer.learn.course.terminal_questions import ask, cell_of_window

# asks as a command does, prints the answer and whether the mode is restored, and reads what the reader typed
PROGRAM = """
import sys, termios
from npformer.learn.course.terminal_questions import ask
before = termios.tcgetattr(0)
print("ready ▸", flush=True)
WAIT
print([ask(sys.stdout, "\\033[16t", patience=PATIENCE), termios.tcgetattr(0) == before], "▸", flush=True)
print([input()], "▸", flush=True)
"""


@pytest.fixture
def program(start):
    """Return a function that starts the program in a pseudo-terminal and waits until it is ready."""

    def begin(answers=None, *, patience=600.0, wait=""):
        terminal = start(
            "-c", PROGRAM.replace("PATIENCE", str(patience)).replace("WAIT", wait), answers=answers
        )
        terminal.read()
        return terminal

    return begin


@pytest.mark.parametrize("size", [b"\033[6;20;10t", b"\xff"], ids=["size", "no ASCII"])
def test_a_terminal_that_answers(program, size):
    terminal = program({b"\033[16t": size, b"\033[c": b"\033[?62;4c"})
    answers = (size + b"\033[?62;4c").decode("ascii", errors="replace")
    assert repr([answers, True]) in terminal.read()
    assert "['typed']" in terminal.type("typed")


def test_the_answers_may_arrive_in_parts(program):
    terminal = program({b"\033[c": b"\033[?62"})
    terminal.read("\033[c")  # the question may be read together with what the program shows first
    os.write(terminal.own, b";4")
    os.write(terminal.own, b"c")
    assert repr(["\033[?62;4c", True]) in terminal.read()


@pytest.mark.parametrize("answers", [{}, {b"\033[16t": b"\033[6;20;10t"}, {b"\033[c": b"\033[?62;4"}])
def test_a_terminal_that_does_not_answer_to_the_end(program, answers):
    terminal = program(answers, patience=0.2)
    assert repr(["", True]) in terminal.read()
    assert "['typed']" in terminal.type("typed")


def test_what_the_reader_has_typed_before_is_kept(program):
    terminal = program({b"\033[c": b"\033[?62;4c"}, wait="sys.stdin.readline()")
    os.write(terminal.own, b"\nahead\n")
    shown = terminal.read("['ahead'] ▸")
    assert repr([None, True]) in shown
    assert "\033[c" not in terminal.raw, "the terminal was not asked"


def test_a_command_in_the_background_is_not_stopped(program):
    """A process in the background that changed the mode of its terminal would be stopped."""
    wait = "import os; os.fork() and os._exit(os.wait()[1]); os.setpgid(0, 0)"
    terminal = program({b"\033[c": b"\033[?62;4c"}, wait=wait)
    assert "['', True]" in terminal.read()


def test_no_terminal_is_asked(tmp_path):
    with io.StringIO() as text, open(tmp_path / "a", "w") as file:
        for stream in (text, file):
            assert ask(stream, "") == ""
            assert cell_of_window(stream) is None
    module = "npformer.learn.course.terminal_questions"
    code = f"import sys; from {module} import ask; print([ask(sys.stdout, '')])"
    pipe = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True)
    assert (pipe.stdout, pipe.stderr) == (b"['']\n", b"")


def test_windows_asks_nothing(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert ask(None, "") == ""
    assert cell_of_window(None) is None


@pytest.mark.parametrize(
    ("size", "expected"),
    [((30, 100, 1000, 600), (10, 20)), ((30, 100, 0, 0), None), ((0, 0, 10, 10), None)],
)
def test_the_size_of_a_letter(size, expected):
    own, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, b"".join(part.to_bytes(2, sys.byteorder) for part in size))
    with os.fdopen(other, "w") as stream:
        assert cell_of_window(stream) == expected
    os.close(own)


def test_nothing_that_is_read_early_is_lost(start):
    """Two screens in one piece stay two screens, and a question or a letter in two pieces is one."""
    code = "import os, time\nfor piece in {}:\n    os.write(1, piece)\n    time.sleep(.05)\nprint(input())\n"
    pieces = ["a ▸b ▸c".encode(), b"\xe2", b"\x96\xb8\033[1", b"6t"]
    terminal = start("-c", code.format(pieces), answers={b"\033[16t": b"answer\n"})
    assert [terminal.read(), terminal.read(), terminal.read()] == ["a ▸", "b ▸", "c▸"]
    assert terminal.read(until="never").split() == ["answer", "answer"]  # its echo, and what is printed
    assert terminal.close() == 0
