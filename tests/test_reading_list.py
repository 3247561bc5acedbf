"""The reading list of docs/architecture.md: what a reader needs to follow one training step of a GPT."""

import ast
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
SKIPPED = re.findall(r"`([\w/]+\.py)`", PAGE.split("A reader can skip what the step enters besides")[1])


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


def test_the_list_has_everything_that_a_step_enters():
    """A step with the plain pairs enters only what the list or the sentence after it names."""
    sizes = {"vocab_size": 11, "d_model": 8, "n_layers": 1, "n_heads": 2, "context": 8, "dropout": 0.1}
    model = GPT(GPTConfig(**sizes), rng=np.random.default_rng(0))
    adam, batch = AdamW(model), windows(np.arange(40) % 11, np.array([0, 5]), 8)
    with plain_pairs():
        seen = entered(lambda: make_step(model, adam, [batch], dropout_rngs(0, 1, 1), 1e-3, 1.0))
    listed = {
        (file, name)
        for file, parts, _ in ROWS
        for name in (definitions(file) if parts == "all" else re.findall(r"`(\w+)`", parts))
    }
    assert ("models/gpt/model.py", "Block") in seen
    assert sorted(pair for pair in seen - listed if pair[0] not in SKIPPED) == []
