"""Any command line of any command does its work or is refused in one sentence, and loses and ignores nothing.

The command lines are those that together have every option, the same with odd names in any place, and random
ones, which are the same in every run but for those of the night.
"""

import shlex
import tempfile
from pathlib import Path
from random import Random

import command_fuzz
import pytest
from command_fuzz import NAME, CommandLine, RecordedArguments
from command_lines import LINES, texts_in
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from npformer.cli.main import COMMANDS, make_parser, read_command_line

NIGHTLY = pytest.mark.nightly

# one name in every run, and more every night
NAMES = [NAME, *(pytest.param(name, marks=NIGHTLY) for name in ("a" * 300, *command_fuzz.NAMES[3::4]))]

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
    """Run a command line and return its outcome."""
    with tempfile.TemporaryDirectory(dir=prepared.parent) as place:
        return command_fuzz.run_case(line, prepared, Path(place))


# every option


@pytest.mark.parametrize("line", LINES)
def test_every_option_that_is_given_is_read(prepared, line):
    outcome = run(CommandLine(tuple(shlex.split(line))), prepared)
    assert outcome.wrong == []
    assert outcome.ignored == []
    lacks_something = "--base-url" in line or "--backend cupy" in line  # there is no network, and no GPU
    assert outcome.status in (0, 1, None) or lacks_something


def test_the_command_lines_have_every_option():
    given = {command: set() for command in COMMANDS}
    for line in LINES:
        command, *others = shlex.split(line)
        given[command] |= make_parser(command).parse(others).given
    given["generate"].add("chat")  # which needs a folder with a chat template: tests/pretrained has one
    for command, names in given.items():
        assert {action.dest for action in make_parser(command)._actions} - {"help"} == names, command


def test_an_ignored_option_is_noticed():
    _, arguments = read_command_line(["tour", "--steps", "3", "--seed", "0", "--out", "tour"])
    recorded = RecordedArguments(arguments)
    assert recorded._ignored == ["out", "seed", "steps"]
    assert recorded.steps == 3
    assert recorded._ignored == ["out", "seed"]


# odd names


def lines_with(name, command):
    """Yield command lines in which a name is the value of one argument, for each that takes any text."""
    done = set()
    for line in LINES:
        argv = shlex.split(line)
        for argument, value in texts_in(line) if argv[0] == command else ():
            if argument not in done:
                done.add(argument)
                yield CommandLine(tuple(name if part == value else part for part in argv))


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_is_text_in_any_place(prepared, command, name):
    for line in lines_with(name, command):
        assert run(line, prepared).wrong == [], line


# random command lines


@pytest.mark.parametrize("number", [1, pytest.param(200, marks=NIGHTLY)])
@pytest.mark.parametrize("command", COMMANDS)
def test_random_command_lines(prepared, command, number):
    @settings(max_examples=number, phases=[Phase.generate])
    @given(st.integers(0, 2**64 - 1))
    def check(seed):
        line = command_fuzz.random_line(command, Random(seed))
        assert run(line, prepared).wrong == [], line

    check()


@pytest.mark.parametrize("line", ONCE_WRONG, ids=lambda line: ascii(" ".join(line.argv))[:60])
def test_command_lines_that_ended_badly_once(prepared, line):
    assert run(line, prepared).wrong == []
