"""The README and the pages in docs/ are true: their examples, commands, links and numbers are right."""

import contextlib
import functools
import io
import json
import math
import re
import runpy

import numpy as np
import pytest
from hugging_face_folders import GPT2, gpt2_tensors, write_folder
from paths import ROOT
from planted_bugs import BUGS
from tokenizer_folders import gpt2

import npformer
from npformer.cli.main import COMMANDS, main, make_parser
from npformer.learn.bugs import BUGS as BUG_TASKS
from npformer.learn.course.lesson import all_lessons
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.lesson_links import PUBLISHED
from npformer.models.registry import ARCHITECTURES
from npformer.training.presets import find_preset

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name):
    """Return the text of a page in docs/."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def blocks(kind, text=README):
    """Return the code blocks of one language, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def without_rounding(text):
    """Return the text with rounding errors such as 2.3e-16 masked, since they differ between processors."""
    return re.sub(r" *\d\.\de[-+]\d\d", " error", text).strip()


def test_the_examples_print_the_output_that_the_readme_shows():
    names = {}
    for code in blocks("python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        shown = README.split(code)[1].split("```")[2]
        assert without_rounding(shown) == without_rounding(printed.getvalue())


def test_the_example_with_a_folder_of_hugging_face_runs(tmp_path, monkeypatch):
    """The folder here has a small random GPT-2."""
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("py")
    tokens, positions = np.ones((600, 6), np.float32), np.ones((64, 6), np.float32)
    tensors = gpt2_tensors() | {"transformer.wte.weight": tokens, "transformer.wpe.weight": positions}
    folder = gpt2(tmp_path / "gpt2")  # the files of a tokenizer
    write_folder(folder, GPT2 | {"vocab_size": 600, "n_positions": 64}, tensors)
    exec(code, {"npformer": npformer})
    assert (tmp_path / "attention.png").stat().st_size > 5000


def test_the_checker_finds_the_mistake_as_shown(tmp_path, monkeypatch, capsys):
    """The page on gradient checking shows a layer with a wrong backward pass and what the checker prints."""
    monkeypatch.chdir(tmp_path)
    text = page("gradient-checking")
    (tmp_path / "my_norm.py").write_text(blocks("python", text)[0])
    command, _, output = blocks("console", text)[0].partition("\n")
    assert main(command.removeprefix("$ npformer ").split()) == 1
    assert without_rounding(output) == without_rounding(capsys.readouterr().out)


def test_the_first_block_has_the_two_commands():
    """They make an environment and end with the tour and the tests; CI runs them from the README."""
    commands = blocks("bash")[0].splitlines()
    assert len(commands) == 2
    assert all(command.startswith("python3 -m venv .venv && ") for command in commands)
    assert commands[0].endswith("npformer tour")
    assert commands[1].endswith("pytest")
    assert README.index(commands[1]) < 1500


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_every_command_has_a_line():
    assert [command for command in COMMANDS if f"`npformer {command}" not in page("commands")] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_commands_on_the_pages_exist(path):
    """Every `npformer X --option` on a page is a command with that option."""
    for code in code_of(path.read_text(encoding="utf-8")):
        for command, arguments in re.findall(r"(?:^|[\s/])npformer ([a-z]+)(.*)", code):
            assert command in COMMANDS, command
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", arguments):
                assert option in help_of(command), f"npformer {command} has no {option}"


def code_of(text):
    """Return the code of a page: every inline code and every line of a block of commands."""
    for block in blocks("bash", text) + blocks("console", text):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


@functools.cache
def help_of(command):
    """Return the text of `npformer COMMAND --help`."""
    return make_parser(command).format_help()


def test_links_have_existing_targets_and_every_page_is_listed():
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert target.startswith("http") or (path.parent / target).exists(), target
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert [name for name in pages if f"({name})" not in page("README")] == []


def test_links_are_absolute_on_pypi():
    """setup.py makes the README's links absolute with the constant that contains the project's address."""
    space = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    text, address = space["with_absolute_links"](README), space["ADDRESS"]
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert targets
    assert all(target.startswith("https://") for target in targets)
    assert f"]({address}/raw/main/figures/explorer.gif)" in text
    files = [path for path in ROOT.glob("*.*") if path.suffix in (".md", ".toml", ".py", ".in")]
    files += (ROOT / "npformer").rglob("*.py")
    having = {path.relative_to(ROOT).as_posix() for path in files if address in path.read_text("utf-8")}
    notebooks = "npformer/learn/course/export.py"  # equal: test_export
    assert having == {"setup.py", "npformer/learn/site/lesson_links.py", notebooks}  # equal: test_start_here
    for url in space["URLS"].values():  # the pages are in the repository
        path = url.removeprefix(address).removeprefix("/blob/main/").removeprefix("/tree/main/")
        assert path in ("", "/issues", PUBLISHED) or (ROOT / path).exists(), url


def test_the_architectures_on_the_pages_exist():
    named = set(
        re.findall(r'"((?:paper|jianshu|datawhale|tensor2tensor|paperspace)[\w.-]*)"', page("configurations"))
    )
    assert named <= set(ARCHITECTURES.names())
    assert {"paper-base", "paper-big", "jianshu-demo", "datawhale", "tensor2tensor", "paperspace"} <= named


def test_the_numbers_of_things_are_right():
    text = " ".join(README.split())
    assert f"{len({lesson.chapter for lesson in all_lessons()})} chapters" in text
    assert f"{len(EXERCISES)} exercises" in text
    assert f"Each of {len(BUG_TASKS)} more programs contains a bug" in text
    assert f"| {len(BUGS)}; the run of every night fails unless each is caught |" in page("measurements")


@pytest.mark.parametrize("name", ["gpt-shakespeare", "gpt-shakespeare-long"])
def test_the_losses_of_the_language_models_are_those_of_their_logs(name):
    """docs/training.md says what the run of the preset reached, whose log is in figures/."""
    log = [json.loads(line) for line in (ROOT / f"figures/{name}/log.jsonl").read_text().splitlines()]
    best = min((entry for entry in log if "valid_loss" in entry), key=lambda entry: entry["valid_loss"])
    (row,) = re.findall(rf"^\| `{name}` \|.*\| (\d[\d.]*) \| \[log\]", page("training"), re.MULTILINE)
    assert float(row) == round(best["valid_bits_per_character"] * math.log(2), 3)
    preset = find_preset(name)
    assert log[-1]["step"] == preset.training.steps
    assert f"| `{name}` | {preset.model(preset.dataset()).count_parameters():,} |" in page("training")
    assert f" steps in {duration_of(log)} on two cores" in page("training")


def duration_of(log):
    """Return how long a run took on two cores, as the page says it."""
    seconds = log[-1]["seconds"]
    return f"{seconds:.0f} seconds" if seconds < 600 else f"{seconds / 60:.0f} minutes"
