"""The reading list of docs/architecture.md: what a reader needs to follow one training step of a GPT."""

import ast
import functools
import re
import sys
from pathlib import Path

import numpy as np
from paths import ROOT

from npformer.data.text import windows
from npformer.kernels import plain_pairs
from npformer.models.gpt import GPT, GPTConfig
from npformer.training.optimizer import AdamW
from npformer.training.step import dropout_rngs, make_step

PACKAGE = ROOT / "npformer"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
MOST_LINES = 2400
ROWS = re.findall(r"^\| `([\w/]+\.py)` \| (.+?) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
SKIPPED = re.findall(
    r"^\| `([\w/]+\.py)` \| (.+?) \| [a-z ]", PAGE.split("A reader can skip")[1], re.MULTILINE
)


def definitions(file):
    """Return a dict from each function and class of a file to its number of lines."""
    found = {}
    for node in ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min(part.lineno for part in (node, *node.decorator_list))
            found[node.name] = node.end_lineno - first + 1
    return found


def lines_of(file, parts):
    """Return the number of lines of a file, or of the parts of it that the list names."""
    if parts == "all":
        return len((PACKAGE / file).read_text(encoding="utf-8").splitlines())
    return sum(definitions(file)[name] for name in re.findall(r"`(\w+)`", parts))


def entered(step):
    """Return the pairs (file, function or class) of npformer that a step enters."""
    found = set()

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            found.add((path.relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname.split(".")[0]))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(before)
    return found


def test_the_list_gives_the_right_numbers_of_lines():
    counted = [(file, parts, f"{lines_of(file, parts):,}") for file, parts, _ in ROWS]
    assert counted
    assert counted == ROWS


def test_the_list_can_be_read_in_one_sitting():
    total = sum(lines_of(file, parts) for file, parts, _ in ROWS)
    assert f"{total:,} lines" in PAGE
    assert total <= MOST_LINES


@functools.cache
def entered_by_a_step():
    """Return what a training step of a small GPT with the plain pairs enters."""
    sizes = {"vocab_size": 11, "d_model": 8, "n_layers": 1, "n_heads": 2, "context": 8, "dropout": 0.1}
    model = GPT(GPTConfig(**sizes), rng=np.random.default_rng(0))
    adam, batch = AdamW(model), windows(np.arange(40) % 11, np.array([0, 5]), 8)
    with plain_pairs():
        return entered(lambda: make_step(model, adam, [batch], dropout_rngs(0, 1, 1), 1e-3, 1.0))


def named(file, parts):
    """Return the pairs (file, function or class) that a row names."""
    return {(file, name) for name in (definitions(file) if parts == "all" else re.findall(r"`(\w+)`", parts))}


def test_the_list_has_everything_that_a_step_enters():
    """A step with the plain pairs enters only what the list or the table of what can be skipped names."""
    seen = entered_by_a_step()
    known = set().union(*(named(file, parts) for file, parts, _ in ROWS), *(named(*row) for row in SKIPPED))
    assert ("models/gpt/model.py", "Block") in seen
    assert sorted(seen - known) == []


def test_what_can_be_skipped_is_entered_and_is_not_in_the_list():
    seen = entered_by_a_step()
    listed = set().union(*(named(file, parts) for file, parts, _ in ROWS))
    assert len(SKIPPED) > 10
    for file, parts in SKIPPED:
        names = named(file, parts)
        assert names & seen if parts == "all" else names <= seen, file
        assert not names & listed, file
