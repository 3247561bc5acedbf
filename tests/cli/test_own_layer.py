"""npformer gradcheck on a user's own file, which may do anything."""

import json
import os

import pytest

from npformer.cli.main import main

DOUBLE = """
def double(x):
    return 2 * x, None

def double_backward(dy, cache):
    return 2 * dy
"""

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals and limits")
MISBEHAVING = {
    "exits": ("import sys; sys.exit(0)", "own.py ended the program (SystemExit 0): leave out exit()"),
    "exits hard": ("import os; os._exit(0)", "your code ended the program with status 0 before the check"),
    "interrupts": ("raise KeyboardInterrupt", "own.py:double raised KeyboardInterrupt in line 8"),
    "loops": ("while True: pass", "it was stopped after 1 seconds, in line 8: is there an infinite loop?"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "your code was killed by signal 11"),
    "memory": ("x = bytearray(10**12)", "own.py could not be run: MemoryError in line 8"),
    "asks": ("input()", "own.py could not be run: EOFError in line 8"),
    "lines": ("raise ValueError('two\\nlines')", "own.py could not be run: ValueError in line 8: two lines"),
}


@POSIX
@pytest.mark.parametrize("name", MISBEHAVING)
def test_files_that_misbehave(name, tmp_path, monkeypatch, capsys):
    code, words = MISBEHAVING[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(f"{DOUBLE}\n{code}\n", encoding="utf-8")
    seconds = "1" if "stopped" in words else "600"
    assert main(["gradcheck", "own.py:double", "--shape", "2,3", "--seconds", seconds]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err
    assert printed.err.count("\n") == 1


# what a pass may do while it runs, and the message of the one line that is printed
WHILE_IT_RUNS = {
    "exits in backward": ("pass", "import sys; sys.exit(0)", "ended the program (SystemExit 0)"),
    "exits in forward": ("raise SystemExit('all correct')", "pass", "(SystemExit all correct)"),
    "exits hard": ("pass", "import os; os._exit(0)", "ended the program with status 0 before the check"),
    "raises without a text": ("pass", "raise ValueError", "raised ValueError in line 8"),
    "raises a BaseException": ("raise BaseException", "pass", "raised BaseException in line 3"),
    "loops": ("\n    while True: pass", "pass", "in line 4: is there an infinite loop?"),
    "recursion": ("square(x)", "pass", "raised RecursionError in line 3"),
    "NaN": ("x = x * float('nan')", "pass", "contains NaN or infinity: give other inputs"),
}
# what a file may do to look correct: its gradient lacks the factor 2
DISGUISES = {
    "prints a verdict": "print('square: all gradients correct')",
    "writes reports": "import pathlib; pathlib.Path('report.json').write_text('{\"ok\": true}')",
    "ends with status 0": "import atexit, os; atexit.register(os._exit, 0)",
    "changes print": "import builtins; builtins.print = lambda *a, **k: None",
}


def square_with(in_forward, in_backward, after=""):
    return f"""
def square(x):
    {in_forward}
    return x**2, x


def square_backward(dy, x):
    {in_backward}
    return x * dy


{after}
"""


@POSIX
@pytest.mark.parametrize("name", WHILE_IT_RUNS)
def test_passes_that_misbehave(name, tmp_path, monkeypatch, capsys):
    in_forward, in_backward, words = WHILE_IT_RUNS[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(square_with(in_forward, in_backward), encoding="utf-8")
    seconds = "2" if name == "loops" else "600"
    assert main(["gradcheck", "own.py:square", "--shape", "2,3", "--seconds", seconds]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("name", DISGUISES)
def test_a_wrong_gradient_in_disguise(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(square_with("pass", "pass", DISGUISES[name]), encoding="utf-8")
    assert main(["gradcheck", "own.py:square", "--shape", "2,3"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("square: INCORRECT")
    assert "0.5 = 1/2 times the correct one" in printed


def test_the_output_of_the_file_does_not_disturb_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(f"{DOUBLE}\nprint('two', 'words')\n", encoding="utf-8")
    assert main(["gradcheck", "own.py:double", "--shape", "2,3", "--json"]) == 0
    printed = capsys.readouterr()
    assert {row["name"] for row in json.loads(printed.out)} == {"double"}
    assert printed.err == "npformer: own.py:double printed: two words\n"


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
    "a generator": (
        "import numpy.random; numpy.random.default_rng = lambda seed: print(open('gone'))",
        "numpy.random.default_rng",
    ),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_a_file_that_replaces_functions_is_refused(name, tmp_path, monkeypatch, capsys):
    code, replaced = REPLACEMENTS[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(square_with("pass", "pass", code), encoding="utf-8")
    assert main(["gradcheck", "own.py:square", "--shape", "2,3"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"own.py replaces {replaced}, so the check would prove nothing" in printed.err
