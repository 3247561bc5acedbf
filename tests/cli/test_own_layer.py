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
    "forged": (
        "import numpy.random; numpy.random.default_rng = lambda seed: print(open('gone'))",
        "No such file or directory: 'gone'",
    ),
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


def test_the_output_of_the_file_does_not_disturb_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(f"{DOUBLE}\nprint('two', 'words')\n", encoding="utf-8")
    assert main(["gradcheck", "own.py:double", "--shape", "2,3", "--json"]) == 0
    printed = capsys.readouterr()
    assert {row["name"] for row in json.loads(printed.out)} == {"double"}
    assert printed.err == "npformer: own.py:double printed: two words\n"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_time_limit_must_be_positive(seconds, capsys):
    assert main(["gradcheck", "own.py:double", "--shape", "2,3", "--seconds", seconds]) == 2
    assert f"--seconds is '{seconds}': give a number of seconds above 0" in capsys.readouterr().err


def test_a_forged_report_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    forged = (
        "import npformer.cli.own_layer as own_layer\n"
        "own_layer.plain_rows = lambda report: [['x', 0.0, 'complex step', 1e-11, None]]\n"
    )
    (tmp_path / "own.py").write_text(DOUBLE + forged, encoding="utf-8")
    assert main(["gradcheck", "own.py:double", "--shape", "2,3"]) == 2
    assert "could not be checked: its answer cannot be read" in capsys.readouterr().err
