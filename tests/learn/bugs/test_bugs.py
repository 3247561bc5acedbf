"""The bugs: each has the symptom that it claims, is found by its trials, and its repair is accepted."""

import ast
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytest
from bug_repairs import HALF_REPAIRS, OTHER_REPAIRS
from mistake_tables import drawn
from processor_time import processor_time

from npformer.learn.bugs import BUGS
from npformer.learn.bugs.judge import fill, judge, observe
from npformer.learn.bugs.specimen import Run, names_of, patched
from npformer.learn.tasks.answer import transported
from npformer.learn.tasks.verdict import Verdict

ALL = list(BUGS)
each, trained = (  # by day, a third of the bugs is trained
    pytest.mark.parametrize("specimen", list(map(BUGS.find, names)), ids=lambda specimen: specimen.name)
    for names in (BUGS.names(), drawn(BUGS.names(), 3))
)

# the smallest factor by which the bug worsens the last value of the curve; the measured factors are larger
WORSE = {
    "linear": 3, "layer-norm": 1.3, "embedding": 2, "cross-entropy": 1.5, "dropout": 1.8, "adam": 2,
    "tied-weights": 1.15, "shared-layer": 2, "split-heads": 3, "attention": 5, "positions": 3, "padding": 20,
    "decoder": 3, "checkpointing": 2.5, "accumulation": 1.3, "beam-search": 1.3, "recurrent": 5,
    "local-attention": 3,
    "hard-attention": 3, "latent-attention": 10, "rotary-sign": 1.5, "window": 30, "weight-decay": 2.5,
}  # fmt: skip

# the other facts in the stories, of the numbers with the bug and without it
FACTS = {
    "linear": lambda bug, right: abs(bug["small"] - right["small"]) < 0.1 * right["small"],
    "layer-norm": lambda bug, _: bug["lowest"] < 0.9 and bug["highest"] > 1.1,
    "embedding": lambda bug, right: bug["often"] > 2 * right["often"],
    "cross-entropy": lambda bug, right: bug["bare"] == right["bare"],
    "dropout": lambda bug, right: abs(bug["training"] - right["training"]) < 0.1 * right["training"],
    "shared-layer": lambda bug, right: bug["once"] == right["once"] > right["last"],
    "split-heads": lambda bug, right: bug["one"] == right["one"] < 0.5 * bug["last"] and bug["last"] < 2.48,
    "attention": lambda bug, right: bug["bare"] == right["bare"] < 0.1,
    "language-model": lambda bug, right: (
        bug["last"] < 0.3 < np.log(2) < right["last"] < 0.9 and bug["alone"] > 1 > right["alone"]
    ),
    "positions": lambda bug, right: bug["still"] > 2 * right["still"],
    "padding": lambda bug, right: bug["bare"] == right["bare"] < 0.05,
    "decoder": lambda bug, right: bug["right"] < 30 and right["right"] > 80,
    "accumulation": lambda bug, _: bug["reported"] < 0.85 * bug["last"],
    "precision": lambda bug, right: (
        abs(bug["last"] - right["last"]) < 1e-4
        and (bug["dtype"], right["dtype"]) == ("float64", "float32")
        and bug["kilobytes"] > 1.4 * right["kilobytes"]
    ),
    "beam-search": lambda bug, right: bug["best"] < bug["last"] and bug["words"] < right["words"],
    "relative": lambda bug, right: (
        bug["last"] == right["last"] and bug["right"] < 40 < 99 < bug["whole"] == right["right"]
    ),
    "rotary-values": lambda bug, right: (
        bug["right"] > 95 and bug["later"] < 40 and right["right"] == right["later"] > 95
    ),
    "rotary-sign": lambda bug, right: bug["right"] < 50 and right["right"] > 95,
    "rotary-decoding": lambda bug, right: (
        bug["last"] == right["last"] and bug["right"] < 45 < 95 < bug["whole"] == right["right"]
    ),
    "window": lambda bug, right: right["last"] < 0.05 < 0.4 < bug["last"] < np.log(2),
    "weight-decay": lambda bug, right: (
        bug["gain"] < 0.3 < 1 < right["gain"] and bug["bias"] < 0.5 * right["bias"]
    ),
    "latent-attention": lambda bug, right: abs(bug["columns"] - right["columns"]) < 1e-6,
    "recurrent": lambda bug, right: (
        bug["last"] > 1.5 * bug["bare"] and bug["bare"] == right["bare"] > right["last"]
    ),
    "local-attention": lambda bug, right: (
        bug["bare"] == right["bare"] < 0.35 and bug["short"] > 1.2 * bug["last"]
    ),
    "hard-attention": lambda bug, right: (
        bug["one"] > 1.5 > 0.5 > right["one"] and abs(bug["adam"] - right["adam"]) < 0.02
    ),
}


class Repaired(NamedTuple):
    """A bug whose repair was judged: the verdict, and the trainings with the bug and without it."""

    verdict: Verdict
    seconds: float  # of processor time
    bug: Run
    right: Run


@cache
def repaired(specimen):
    """Judge the repair of a bug. That trains the code twice, once without the bug and once with it."""
    runs = []

    def train(own):
        runs.append(specimen.train(own))
        return runs[-1]

    noting = replace(specimen, train=train)
    with processor_time() as used:
        observations = observe(noting, vars(names_of(specimen.repaired_code())))
        verdict = judge(noting, [transported(observation) for observation in observations])
    right, bug = runs
    return Repaired(verdict, used.seconds, bug, right)


def judged_without_training(specimen, code):
    """Return the verdict on what some code does in the trials, or None if it passes all of them."""
    observations = islice(observe(specimen, vars(names_of(code))), len(specimen.trials))
    return judge(specimen, [transported(observation) for observation in observations])


def test_there_are_enough_bugs_and_their_numbers_are_in_order():
    assert len(ALL) >= 13
    assert [specimen.number for specimen in ALL] == list(range(1, len(ALL) + 1))


@each
def test_the_trials_tell_the_code_with_the_bug_from_the_repaired_one(specimen):
    verdict = judged_without_training(specimen, specimen.code())
    assert not verdict.solved
    assert verdict.message.startswith("the bug is still there: ")
    assert judged_without_training(specimen, specimen.repaired_code()) is None


@trained
def test_the_repair_is_accepted_and_the_story_printed(specimen):
    """At least two trials find the bug, so a repair that satisfies only one of them is not enough."""
    verdict, seconds, *_ = repaired(specimen)
    assert verdict.solved, verdict
    assert seconds < 5
    story = "\n".join(verdict.story)
    assert "{" not in verdict.story[0]
    assert story.endswith(specimen.repair.strip("\n"))
    found = [
        line.split()[0] == "finds" for line in verdict.story if line.startswith(("  passes ", "  finds "))
    ]
    assert len(found) == len(specimen.trials) >= 4
    assert not found[0], "the first trial is the check that most developers would have written"
    assert sum(found) >= (1 if specimen.name == "dropout" else 2)


@pytest.mark.parametrize("repair", HALF_REPAIRS)
def test_half_repairs_are_not_accepted(repair):
    specimen = BUGS.find(repair.partition(": ")[0])
    verdict = judged_without_training(specimen, patched(specimen.code(), HALF_REPAIRS[repair]))
    assert verdict is not None


@pytest.mark.parametrize("repair", OTHER_REPAIRS)
def test_other_correct_repairs_pass_all_trials(repair):
    specimen = BUGS.find(repair.partition(": ")[0])
    assert judged_without_training(specimen, patched(specimen.code(), OTHER_REPAIRS[repair])) is None


@trained
def test_the_symptom_is_real(specimen):
    """Training gives the numbers of the symptom and the story; the bug worsens them by the factor WORSE."""
    _, _, bug_run, right_run = repaired(specimen)
    bug, right = bug_run.numbers(), right_run.numbers()
    assert np.isfinite([bug["last"], right["last"]]).all()
    assert bug["last"] > WORSE.get(specimen.name, 0) * right["last"]
    assert specimen.name not in FACTS or FACTS[specimen.name](bug, right), (bug, right)
    learnt = bug.get("bare", bug["last"])  # without padding, if the bug is about padding
    assert learnt < 0.8 * bug_run.losses[0], "the code with the bug still learns"
    for text in (specimen.symptom, specimen.story):
        filled = fill(text, bug_run, right_run)
        assert "{" not in filled
        assert "nan" not in filled


@each
def test_the_declaration_is_complete(specimen):
    assert len(specimen.hints) == 3
    assert len(specimen.summary) <= 62, "the list fits a terminal of 100 columns"
    text = specimen.file_text()
    assert all(len(line) <= 110 for line in text.splitlines())
    assert specimen.names(), "the learner's file defines something"
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            assert ast.get_docstring(node)
    for word in ("bug", "wrong", "specimen"):
        assert word not in specimen.code(), "the code does not give itself away"


@pytest.mark.parametrize(
    ("text", "name"),
    [("3", "embedding"), ("03_embedding", "embedding"), ("02_layer_norm", "layer-norm"), ("ADAM", "adam")],
)
def test_a_bug_is_found_by_number_name_or_file(text, name):
    assert BUGS.find(text).name == name
