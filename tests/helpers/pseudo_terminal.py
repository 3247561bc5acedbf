"""A command in a pseudo-terminal, for the tests that use it as a person does."""

import codecs
import os
import select
import subprocess
import time
from pathlib import Path

import pytest
from typing_reader import COLUMNS, OF_TERMINALS, ROWS, without_colours
from waiting import PATIENCE

pty = pytest.importorskip("pty")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

MARK = "▸"  # the end of every question


class Terminal:
    """A command in a pseudo-terminal. A screen is the text up to the next question.

    What the command shows after that text stays for the next screen, however the pieces arrive.

    Args:
        command: The command and its arguments.
        cwd: The folder in which it runs.
        columns: The width of the terminal.
        answers: What the terminal sends, as if it were typed, when these bytes are shown.
        environment: Environment variables.
    """

    def __init__(self, command, cwd, columns=COLUMNS, answers=None, **environment):
        self.answers = answers or {}
        self.own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, bytes([ROWS, 0, columns, 0, 0, 0, 0, 0]))
        variables = {"TERM": "xterm-256color", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
        kept = {name: value for name, value in os.environ.items() if not OF_TERMINALS.match(name)}
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=cwd,
            env=kept | variables | environment,
            preexec_fn=_own_terminal,
        )
        os.close(other)
        self.raw = ""  # the last screen, with its colours
        self._ahead = ""  # what is already read and belongs to the next screen
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._tail = b""  # the last bytes, in which a question to the terminal may have begun

    def read(self, until=MARK):
        """Return the output up to and including a text, without colours, or all of it if the command ends."""
        text, end = self._ahead, time.monotonic() + PATIENCE
        while until not in text:
            ready, _, _ = select.select([self.own], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{until!r} did not appear in {text!r}"
            try:
                piece = os.read(self.own, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            self._answer(piece)
            text = (text + self._decoder.decode(piece)).replace("\r\n", "\n")
        screen, found, self._ahead = text.partition(until)
        self.raw = screen + found
        return without_colours(self.raw)

    def _answer(self, piece):
        """Send the answers to the questions in the output. A question may come in two pieces."""
        for question, answer in self.answers.items():
            shown = self._tail[1 - len(question) :] + piece
            os.write(self.own, answer * shown.count(question))
        self._tail = (self._tail + piece)[-64:]

    def type(self, line="", until=MARK):
        """Type a line and Enter. Return the screen that follows."""
        os.write(self.own, (line + "\n").encode())
        return self.read(until)

    def control(self, key, until):
        """Press a control key once the command waits for it: while it computes, it may miss the key."""
        time.sleep(0.3)
        while self._computes():
            time.sleep(0.05)
        os.write(self.own, bytes([ord(key) - 64]))
        return self.read(until)

    def _computes(self):
        """Return whether the main thread is running or ready to run; False where /proc is missing."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        return text.rpartition(")")[2].split()[0] in "RD"

    def close(self):
        """Wait for the end. Return the exit status."""
        status = self.process.wait(PATIENCE)
        os.close(self.own)
        return status


def _own_terminal():
    """Make the pseudo-terminal the controlling terminal, so that Ctrl-C reaches the process."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
