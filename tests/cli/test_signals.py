"""Signals: every command ends with one line and the usual status, and training ends with a checkpoint."""

import contextlib
import os
import signal
import subprocess
import sys
from itertools import product

import pytest

from npformer.cli.main import main
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import RunFolder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")

TRAIN = ["train", "--task", "copy", "--run", "run", "--steps", "9", "--backend", "numpy"] + [
    part for size in ("d_model=8", "d_ff=8", "n_heads=1", "n_layers=1") for part in ("--set", size)
]


def run(program, *arguments, ignored=()):
    """Run a program that ends with a call of npformer's main function, in a process of its own."""

    def ignore():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    lines = f"import os, signal, sys\n{program}\nfrom npformer.__main__ import main\nsys.exit(main())"
    command = [sys.executable, "-c", lines, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=ignore)


# a signal during an import, which raises the exception of the signal or another one

IMPORT = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            {try_}os.kill(os.getpid(), signal.{signal})
            {except_}
sys.meta_path.insert(0, Finder())
"""
NAMES = ["npformer.cli.main", "npformer.cli.train", "numpy", "numpy._core.multiarray", "rich.console"]
AS = {"itself": ("", "")} | {
    name: ("\n            try: ", f"except BaseException: raise {error}")
    for name, error in (
        ("ImportError", "ImportError(name)"),
        ("OSError", "OSError(5, name)"),
        ("SystemError", "SystemError(name)"),
    )
}
STATUS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
NIGHTLY = pytest.mark.nightly
SIGNALS = pytest.mark.parametrize(
    ("sent", "status"),
    [pytest.param(*row, marks=() if row[0] == "SIGTERM" else NIGHTLY) for row in STATUS.items()],
)
# by default, six cases with every name and every exception
CASES = [
    pytest.param(*case, marks=NIGHTLY if number % 7 else ())
    for number, case in enumerate(product(NAMES, AS, ("SIGINT", "SIGTERM")))
]


@pytest.mark.parametrize(("name", "error", "sent"), CASES)
def test_a_signal_during_the_imports(name, error, sent):
    try_, except_ = AS[error]
    done = run(IMPORT.format(name=name, signal=sent, try_=try_, except_=except_), "train", "--help")
    assert (done.returncode, done.stdout, done.stderr) == (STATUS[sent], "", "npformer: stopped\n")


@SIGNALS
def test_a_signal_during_a_write_leaves_nothing_half_written(tmp_path, sent, status):
    program = f"os.chdir({str(tmp_path)!r}); os.fsync = lambda file: os.kill(os.getpid(), signal.{sent})"
    done = run(program, "glossary", "--write")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "npformer: stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_an_ignored_signal_stays_ignored(tmp_path):
    program = (
        f"os.chdir({str(tmp_path)!r}); sync = os.fsync\n"
        "def fsync(file):\n"
        "    for number in (signal.SIGINT, signal.SIGHUP):\n"
        "        os.kill(os.getpid(), number)\n"
        "    sync(file)\n"
        "os.fsync = fsync"
    )
    done = run(program, "glossary", "--write", ignored=(signal.SIGINT, signal.SIGHUP))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "GLOSSARY.md").exists()


STEP = """
os.chdir({folder!r})
from npformer.training.optimizer import Adam
plain = Adam.step
def step(adam, *arguments):
    if adam.t == 3:
        for _ in range({times}):
            os.kill(os.getpid(), signal.{signal})
    plain(adam, *arguments)
Adam.step = step
"""


@SIGNALS
def test_training_ends_after_the_step_with_a_checkpoint(tmp_path, sent, status):
    done = run(STEP.format(folder=str(tmp_path), signal=sent, times=1), *TRAIN)
    assert (done.returncode, done.stderr) == (status, "")
    assert "stopped after step 4; resume with: npformer train --resume run\n" in done.stdout
    assert load_checkpoint(RunFolder(tmp_path / "run").last).step == 4
    with contextlib.chdir(tmp_path):
        assert main(["train", "--resume", "run"]) == 0
    assert load_checkpoint(RunFolder(tmp_path / "run").last).step == 9


def test_a_second_signal_ends_training_at_once(tmp_path):
    done = run(STEP.format(folder=str(tmp_path), signal="SIGTERM", times=2), *TRAIN)
    assert (done.returncode, done.stderr) == (143, "")
    assert "stopped after step 0; resume with: npformer train --resume run\n" in done.stdout
