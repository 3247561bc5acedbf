"""CITATION.cff and the pages for new readers: every command, file, link and number is right."""

import re
import runpy
import shlex
import tomllib

import pytest
from paths import ROOT

import npformer
from npformer.cli.main import main
from npformer.interop.families import FAMILIES
from npformer.learn.bugs import BUGS
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import find_lesson
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.lesson_links import PUBLISHED, REPOSITORY

START, COMPARISON = (
    (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("start-here", "comparison")
)
READERS = re.split(r"^## ", START, flags=re.MULTILINE)[1:]
PROJECTS = [
    "The Annotated Transformer",
    "TinyTorch",
    "BertViz",
    "transformer-explainer",
    "torch.autograd.gradcheck",
]
LONG = r"tour|lesson 0\.1$"  # tests of their own: the tour trains, and a lesson without --html asks questions


def steps(section):
    """Return the rows (step, time, result) of a reader's table."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return [row for row in rows if row[0] != "step" and not row[0].startswith("-")]


def test_each_of_five_readers_has_three_steps_and_a_first_success():
    assert len(READERS) == 5
    for section in READERS:
        assert len(steps(section)) == 3
        assert "The first success is " in section
        for step, time, result in steps(section):
            assert re.fullmatch(r"`npformer .+`|\[.+\]\(.+\)", step)
            assert re.fullmatch(r"\d+ (s|minutes)( to read)?", time)
            assert result


def test_the_minutes_of_a_lesson_are_those_of_the_formula():
    stated = re.findall(r"`npformer lesson ([\d.]+)` \| (\d+) minutes to read", START)
    assert stated == [("0.0", str(minutes_of(find_lesson("0.0"))))]


@pytest.mark.parametrize("section", READERS, ids=lambda section: section.splitlines()[0])
def test_the_steps_of_a_reader_work(section, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
        (tmp_path / code.split()[1]).write_text(code, encoding="utf-8")
    for step, _, result in steps(section):
        command = step.strip("`").removeprefix("npformer ")
        if step.startswith("[") or re.match(LONG, command):
            continue
        wrong = command.startswith("gradcheck") or command.endswith("check")  # the files are unchanged
        assert main(shlex.split(command)) == wrong, command
        printed = "".join(capsys.readouterr())
        for name in re.findall(r"`([\w/-]+\.(?:py|html))`", result):
            assert (tmp_path / name).stat().st_size > 100
            assert name in printed
    if "gradcheck" in section and "my_linear" in section:
        assert re.search(r"FAIL +w .*transposed; line \d+:.*all gradients are correct", printed, re.DOTALL)


def test_the_comparison_is_fair_and_dated():
    assert re.search(r"read on 20\d\d-\d\d-\d\d", COMPARISON)
    sections = re.split(r"^## ", COMPARISON, flags=re.MULTILINE)[1:]
    *projects, courses = sections
    assert [section.splitlines()[0] for section in projects] == PROJECTS
    for section in projects:
        assert "It is **better** " in section
    assert courses.count("\n- [**") == courses.count("It is **better** ") == 5
    header = next(line for line in COMPARISON.splitlines() if line.startswith("| |"))
    assert header.count("](https://") == len(PROJECTS)


def test_the_comparison_says_what_npformer_has():
    rows = dict(re.findall(r"^\| *(.*?) *\| *(.*?) *\|", COMPARISON, re.MULTILINE))
    assert rows["exercises"] == f"{len(EXERCISES)} with a grader, {len(BUGS)} programs with a bug"
    named = rows["models of other people"].split(", ")
    assert {re.sub(r"\W", "", name).lower() for name in named} == {
        re.sub(r"\W|_", "", name).lower() for name in FAMILIES.names()
    }
    assert f"npformer {npformer.__version__}" in COMPARISON


def entry(name):
    """Return the value of a key at the top level of CITATION.cff."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (value,) = re.findall(rf"^{name}: (.+)$", text, re.MULTILINE)
    return value


def test_the_citation_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert entry("cff-version") == "1.2.0"
    assert entry("version") == npformer.__version__
    assert entry("title") == project["name"]
    assert entry("license") == project["license"]
    setup = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    assert entry("repository-code") == entry("url") == setup["ADDRESS"] == REPOSITORY
    assert f"git clone {REPOSITORY}\n" in START
    owner, name = setup["ADDRESS"].split("/")[-2:]
    assert setup["URLS"]["Site"] == PUBLISHED == f"https://{owner}.github.io/{name}"
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^  - (\w[\w ]*)$", text, re.MULTILINE) == project["keywords"]
    assert "authors:\n  - name: The npformer authors\n" in text, "as the licence names them"
    assert "The npformer authors" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_citation_is_valid_by_the_schema():
    """cffconvert checks it against the schema, where it is installed."""
    cffconvert = pytest.importorskip("cffconvert")
    cffconvert.Citation((ROOT / "CITATION.cff").read_text(encoding="utf-8")).validate()
