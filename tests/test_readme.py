"""The README says what is so: its example prints what it shows, and its commands exist."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from planted_bugs import BUGS

from npformer.cli import COMMANDS
from npformer.course.library import all_lessons
from npformer.exercises import EXERCISES
from npformer.transformer import PRESETS
from npformer.zoo import SPECIMENS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(kind):
    """The code blocks of a kind, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def without_rounding(text):
    """The text with its rounding errors, as 2.3e-16, put out: they differ from one processor to another."""
    return re.sub(r" *\d\.\de[-+]\d\d", " error", text).strip()


def test_the_example_prints_what_the_readme_shows():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(blocks("python")[0], {})
    shown = README.split(blocks("python")[0])[1].split("```")[2]
    assert without_rounding(shown) == without_rounding(printed.getvalue())


def test_the_mistake_is_found_as_shown(tmp_path):
    """The layer with a wrong backward, and what the checker says of it."""
    (tmp_path / "my_norm.py").write_text(blocks("python")[1])
    shown = blocks("console")[0]
    command, _, output = shown.partition("\n")
    arguments = command.removeprefix("$ npformer ").split()
    done = subprocess.run(
        [sys.executable, "-m", "npformer", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert without_rounding(output) == without_rounding(done.stdout)


def test_the_first_screen_has_two_commands():
    """They are the first block, they make their own environment, and they end in the tour and the tests."""
    commands = blocks("bash")[0].splitlines()
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && ") for command in commands)
    assert commands[0].endswith("npformer tour")
    assert commands[1].endswith("pytest")
    assert README.index(commands[1]) < 1500


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_told_of(command):
    assert f"npformer {command}" in README


def test_every_preset_that_is_named_exists():
    named = set(re.findall(r'"((?:paper|jianshu|datawhale|tensor2tensor|paperspace)[\w.-]*)"', README))
    assert named <= set(PRESETS)
    assert {"paper-base", "paper-big", "jianshu-demo", "datawhale", "tensor2tensor", "paperspace"} <= named


def test_files_that_are_linked_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_what_it_counts():
    assert f"**The course**: {len(all_lessons())} lessons" in README
    assert f"{len(EXERCISES)} exercises, graded" in README
    assert f"a zoo of {len(SPECIMENS)} bugs" in README
    assert f"{len(BUGS)} of {len(BUGS)} caught" in README
