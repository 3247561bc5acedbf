"""npformer gradcheck on a user's own file, which may do anything."""

import json
import os

import pytest
from commands import refused, said

from npformer.cli.main import main

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals and limits")
# what a file may do in the forward pass, in the backward pass or at its end, and words of the message
MISBEHAVING = {
    "exits": ("", "", "import sys; sys.exit(0)", "own.py ended the program (SystemExit 0): leave out exit()"),
    "crashes": ("", "", "import ctypes; ctypes.string_at(0)", "your code was killed by signal 11"),
    "memory": ("", "", "x = bytearray(10**12)", "own.py could not be run: MemoryError in line 12"),
    "lines": ("", "", "raise ValueError('two\\nlines')", "could not be run: ValueError in line 12: two l"),
    "interrupts": ("", "", "raise KeyboardInterrupt", "own.py:square raised KeyboardInterrupt in line 12"),
    "raises without a text": ("", "raise ValueError", "", "raised ValueError in line 8"),
    "forgets a sum": ("", "x[:1] += dy", "", "shape (2,3): sum over the axes of the broadcast"),
    "loops": ("\n    while True: pass", "", "", "in line 4: is there an infinite loop?"),
    "recursion": ("square(x)", "", "", "raised RecursionError in line 3"),
}
# what a file may do to look correct: its gradient lacks the factor 2
DISGUISES = {
    "prints a verdict": "print('square: all gradients correct')",
    "writes reports": "import pathlib; pathlib.Path('report.json').write_text('{\"ok\": true}')",
    "ends with status 0": "import atexit, os; atexit.register(os._exit, 0)",
    "changes print": "import builtins; builtins.print = lambda *a, **k: None",
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes own.py, a pair whose gradient is wrong, beside which commands run."""
    monkeypatch.chdir(tmp_path)

    def write_file(in_forward="", in_backward="", after=""):
        text = f"""
def square(x):
    {in_forward or "pass"}
    return x**2, x


def square_backward(dy, x):
    {in_backward or "pass"}
    return x * dy


{after}
"""
        (tmp_path / "own.py").write_text(text, encoding="utf-8")

    return write_file


CHECK = "gradcheck own.py:square --shape 2,3"


@POSIX
@pytest.mark.parametrize("name", MISBEHAVING)
def test_files_that_misbehave(name, write, capsys):
    *code, words = MISBEHAVING[name]
    write(*code)
    assert words in refused(capsys, CHECK, "--seconds", "1" if name == "loops" else "600")


@pytest.mark.parametrize("name", DISGUISES)
def test_a_wrong_gradient_in_disguise(name, write, capsys):
    write(after=DISGUISES[name])
    printed = said(capsys, CHECK, status=1)
    assert printed.startswith("square: INCORRECT")
    assert "0.5 = 1/2 times the correct one" in printed


def test_the_output_of_the_file_does_not_disturb_the_report(write, capsys):
    write(after="print('two', 'words')")
    assert main([*CHECK.split(), "--json"]) == 1
    printed = capsys.readouterr()
    assert {row["name"] for row in json.loads(printed.out)} == {"square"}
    assert printed.err == "npformer: own.py:square printed: two words\n"


# what a file may replace, and the name in the message
REPLACEMENTS = {
    "a function of the checker": (
        "import npformer.cli.own_layer as own_layer\n"
        "own_layer.plain_rows = lambda report: [['x', 0.0, 'complex step', 1e-11, None]]",
        "npformer.cli.own_layer.plain_rows",
    ),
    "a property of the report": (
        "from npformer.checking.report import Report\nReport.ok = property(lambda self: True)",
        "npformer.checking.report.Report.ok",
    ),
    "the code of a function": (
        "import npformer.checking.check as check\n"
        "check.gradcheck.__code__ = (lambda thing, *inputs, **settings: None).__code__",
        "npformer.checking.check.gradcheck",
    ),
    "a function of NumPy": (
        "import numpy as np; np.allclose = np.array_equal = lambda *a, **k: True",
        "numpy.allclose",
    ),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_file_that_replaces_functions_is_refused(name, write, capsys):
    code, replaced = REPLACEMENTS[name]
    write(after=code)
    assert f"own.py replaces {replaced}, so the check would prove nothing" in refused(capsys, CHECK)
