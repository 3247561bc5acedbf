"""Any command line of any command does its work or is refused in one sentence, and loses and ignores nothing.

The command lines are random but the same in every run. The first test runs a few of every command, and the
second one, which takes minutes, runs many.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import command_fuzz
import pytest
from command_fuzz import CommandLine
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from npformer.cli.main import COMMANDS

FEW, MANY = 8, 200  # command lines of each command

# command lines that ended badly once
ONCE_WRONG = [
    CommandLine(("pretrained", "--export", "runs/toy", "--card", "new\x1b[31m.json")),
    CommandLine(("pretrained", "--export", "runs/toy", "--scores", "s.json")),
    CommandLine(("translate", "the cat", "--length-penalty=1e18")),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return a folder with the files that the command lines name, beside which each case has its copy."""
    place = tmp_path_factory.mktemp("fuzz")
    (place / "prepared").mkdir()
    (place / "home").mkdir()
    with command_fuzz.quick(place / "home"):
        command_fuzz.prepare(place / "prepared")
        yield place / "prepared"


def run(line, prepared):
    """Run a command line and return what was wrong."""
    with tempfile.TemporaryDirectory(dir=prepared.parent) as place:
        return command_fuzz.run_case(line, prepared, Path(place)).wrong


def shortest(line, prepared):
    """Return a command line that goes wrong, too, without the arguments that do not matter."""
    for place in range(len(line.argv) - 1, 0, -1):
        shorter = replace(line, argv=line.argv[:place] + line.argv[place + 1 :])
        if run(shorter, prepared):
            line = shorter
    return line


def run_many(prepared, command, number):
    """Run random command lines of one command, and fail with the first that goes wrong, made shorter."""

    @settings(max_examples=number, phases=[Phase.generate])
    @given(st.integers(0, 2**64 - 1))
    def check(seed):
        line = command_fuzz.random_line(command, Random(seed))
        if run(line, prepared):
            line = shortest(line, prepared)
            assert run(line, prepared) == [], line

    check()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_few_random_command_lines(prepared, command):
    run_many(prepared, command, FEW)


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS)
def test_many_random_command_lines(prepared, command):
    run_many(prepared, command, MANY)


@pytest.mark.parametrize("line", ONCE_WRONG, ids=lambda line: ascii(" ".join(line.argv))[:60])
def test_command_lines_that_ended_badly_once(prepared, line):
    assert run(line, prepared) == []
