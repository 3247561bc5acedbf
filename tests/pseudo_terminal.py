"""A command in a pseudo-terminal, for the tests that go through lessons as a learner does."""

import os
import re
import select
import signal
import subprocess
import sys
import time

import pytest

pty = pytest.importorskip("pty")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

COLUMNS, ROWS = 100, 30  # what a lesson is laid out for
MARK = "▸"  # every question ends in it
COLOURS = re.compile(r"\033\[[0-9;?]*[a-zA-Z]|\033[()][A-Z]|\r")


class Terminal:
    """A command in a pseudo-terminal; screens are what appeared up to the next question."""

    def __init__(self, command, cwd, columns=COLUMNS, **environment):
        self.own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, bytes([ROWS, 0, columns, 0, 0, 0, 0, 0]))
        variables = {"TERM": "xterm-256color", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("TMUX", "KITTY", "TERM", "COLUMNS", "LINES"))
        }
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
        self.raw = ""

    def read(self, until=MARK, seconds=120):
        """What appears up to and with some text, without colours; all there is where the command ends."""
        self.raw, data, end = "", b"", time.monotonic() + seconds
        while until not in self.raw:
            ready, _, _ = select.select([self.own], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{until!r} did not appear in {self.raw!r}"
            try:
                piece = os.read(self.own, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            data += piece
            self.raw = data.decode(errors="ignore").replace("\r\n", "\n")
        return COLOURS.sub("", self.raw)

    def type(self, line="", until=MARK):
        """Type a line and Enter; returns the screen that follows."""
        os.write(self.own, (line + "\n").encode())
        return self.read(until)

    def control(self, key, until):
        """Press a control key (0.3 s after the question: readline is deaf while it sets itself up)."""
        time.sleep(0.3)
        os.write(self.own, bytes([ord(key) - 64]))
        return self.read(until)

    def close(self):
        """Wait for the end. Returns the exit status."""
        status = self.process.wait(10)
        os.close(self.own)
        return status


def _own_terminal():
    """The pseudo-terminal becomes the one that Ctrl-C comes from."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start `npformer lesson ...`; what still runs at the end is killed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    terminals = []

    def begin(*arguments, **environment):
        command = [sys.executable, "-m", "npformer", "lesson", *arguments]
        terminals.append(Terminal(command, tmp_path, **environment))
        return terminals[-1]

    yield begin
    for terminal in terminals:
        if terminal.process.poll() is None:
            terminal.process.send_signal(signal.SIGKILL)
            terminal.close()
