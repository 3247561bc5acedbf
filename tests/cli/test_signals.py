"""Signals: every command ends with one line and the usual status, and training ends with a checkpoint."""

import os
import signal
import subprocess
import sys

import pytest

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
AT_ONCE = {"try_": "", "except_": ""}
AS_IMPORT_ERROR = {"try_": "\n            try: ", "except_": "except BaseException: raise ImportError(name)"}
AS_OS_ERROR = {"try_": "\n            try: ", "except_": "except BaseException: raise OSError(5, name)"}
AS_SYSTEM_ERROR = {"try_": "\n            try: ", "except_": "except BaseException: raise SystemError(name)"}


@pytest.mark.parametrize("how", [AT_ONCE, AS_IMPORT_ERROR, AS_OS_ERROR, AS_SYSTEM_ERROR])
@pytest.mark.parametrize(
    "name", ["npformer.cli.main", "npformer.cli.train", "numpy", "numpy._core.multiarray", "rich.console"]
)
def test_a_signal_during_the_imports(name, how):
    for sent, status in (("SIGINT", 130), ("SIGTERM", 143)):
        done = run(IMPORT.format(name=name, signal=sent, **how), "train", "--help")
        assert (done.returncode, done.stdout, done.stderr) == (status, "", "npformer: stopped\n")


@pytest.mark.parametrize(("sent", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_during_a_write_leaves_nothing_half_written(tmp_path, sent, status):
    program = f"os.chdir({str(tmp_path)!r}); os.fsync = lambda file: os.kill(os.getpid(), signal.{sent})"
    done = run(program, "glossary", "--write")
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "npformer: stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_in_a_destructor_is_not_lost(tmp_path):
    """Python drops an exception there, as in a callback of the import system."""
    program = (
        f"os.chdir({str(tmp_path)!r}); sync = os.fsync\n"
        "class Signalling:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "def fsync(file):\n"
        "    Signalling()\n"
        "    import time; time.sleep(60)\n"
        "os.fsync = fsync"
    )
    done = run(program, "glossary", "--write")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "npformer: stopped\n")
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


@pytest.mark.parametrize(("sent", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_training_ends_after_the_step_with_a_checkpoint(tmp_path, sent, status):
    done = run(STEP.format(folder=str(tmp_path), signal=sent, times=1), *TRAIN)
    assert (done.returncode, done.stderr) == (status, "")
    assert "stopped after step 4; resume with: npformer train --resume run\n" in done.stdout
    assert load_checkpoint(RunFolder(tmp_path / "run").last).step == 4
    done = run(f"os.chdir({str(tmp_path)!r})", "train", "--resume", "run")
    assert done.returncode == 0, done.stderr
    assert load_checkpoint(RunFolder(tmp_path / "run").last).step == 9


def test_a_second_signal_ends_training_at_once(tmp_path):
    done = run(STEP.format(folder=str(tmp_path), signal="SIGTERM", times=2), *TRAIN)
    assert (done.returncode, done.stderr) == (143, "")
    assert "stopped after step 0; resume with: npformer train --resume run\n" in done.stdout


def test_training_under_nohup_goes_on(tmp_path):
    program = STEP.format(folder=str(tmp_path), signal="SIGHUP", times=2)
    done = run(program, *TRAIN, ignored=(signal.SIGHUP,))
    assert (done.returncode, done.stderr) == (0, "")
    assert load_checkpoint(RunFolder(tmp_path / "run").last).step == 9
