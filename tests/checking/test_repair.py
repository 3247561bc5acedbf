"""The repair of a backward pass names one or two mistakes, and leaves the functions as they were."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest

from npformer import gradcheck
from npformer.checking import repair
from npformer.mistakes.edits import edits
from npformer.mistakes.scope import scope_of
from npformer.mistakes.search import Search
from npformer.mistakes.source import EditableFunction
from npformer.mistakes.syntax import sites


def wave(x, gain):
    return np.sin(x) * gain**2, (x, gain)


def wave_backward_with_two_mistakes(dy, cache):
    x, gain = cache
    dx = -dy * np.cos(x) * gain**2
    dgain = dy * np.sin(x) * gain
    return dx, dgain


def line_of(function, number):
    return f"line {function.__code__.co_firstlineno + number}: "


def test_two_mistakes_are_both_named_and_the_function_is_left_as_it_was(rng):
    backward = wave_backward_with_two_mistakes
    code = backward.__code__
    x, gain = rng.standard_normal((2, 3, 4))
    diagnosis = gradcheck((wave, backward), x, gain).failures[0].diagnosis
    assert line_of(backward, 2) + "the sign of dy is wrong" in diagnosis
    assert line_of(backward, 3) + "dy * np.sin(x) * gain is half as large" in diagnosis
    assert diagnosis.endswith("all gradients are correct")
    assert backward.__code__ is code


def sums(x):
    return np.cumsum(x, axis=1), None


def sums_backward_in_the_wrong_direction(dy, cache):
    return np.cumsum(dy, axis=1)


def scaled(x, s):
    return x * s, (x, s)


def scaled_backward_with_a_fixed_index(dy, cache):
    x, s = cache
    ds = np.zeros(4)
    for i, _ in enumerate(s):
        ds[i] = (dy[:, i] * x[:, 0]).sum()
    return dy * s, ds


def scaled_backward_with_the_first_part(dy, cache):
    x, s = cache
    ds = np.zeros(4)
    for i in reversed(range(2)):
        ds[2 * i : 2 * i + 2] = (dy[:, 2 * i : 2 * i + 2] * x[:, :2]).sum(0)
    return dy * s, ds


ONE_MISTAKE = {
    "cumsum must run backwards along axis 1": (sums, sums_backward_in_the_wrong_direction),
    "the index 0 is used instead of i": (scaled, scaled_backward_with_a_fixed_index),
    "the part :2 is used instead of the one that belongs to i": (scaled, scaled_backward_with_the_first_part),
}


@pytest.mark.parametrize(("words", "pair"), ONE_MISTAKE.items())
def test_a_mistake_is_named(words, pair, rng):
    inputs = [rng.standard_normal((3, 4))] + ([np.arange(1.0, 5)] if pair[0] is scaled else [])
    assert words in gradcheck(pair, *inputs).failures[0].diagnosis


def test_an_edit_is_undone():
    tree = ast.parse("def f(a, b):\n    c = [a, b]\n    return c").body[0]
    before = ast.dump(tree)
    site = next(site for site in sites(tree) if isinstance(site.node, ast.Name) and site.node.id == "b")
    with site.edit("", ast.Name("a", ast.Load())).made():
        assert ast.unparse(tree).count("[a, a]") == 1
    assert ast.dump(tree) == before


def bent(x):
    return x**2 + np.where(x.real > 10, 5 * (x - 10), 0), x


def bent_backward_without_the_bend(dy, x):
    return 3 * x * dy


def test_no_repair_is_promised_that_holds_at_one_scale_alone():
    x = np.linspace(1, 3, 12).reshape(3, 4)
    (row, *_) = gradcheck((bent, bent_backward_without_the_bend), x).failures
    assert "all gradients are correct" not in row.diagnosis


def test_the_time_of_a_search_is_limited(rng, monkeypatch):
    monkeypatch.setattr(repair, "Budget", lambda seconds: SimpleNamespace(is_over=lambda: True))
    x, gain = rng.standard_normal((2, 3, 4))
    diagnosis = gradcheck((wave, wave_backward_with_two_mistakes), x, gain).failures[0].diagnosis
    assert "all gradients are correct" not in diagnosis


def total(a, b):
    return a - b


@pytest.mark.parametrize("has_gradients", [True, False])
def test_factors_of_derivatives_are_tried_in_gradients_only(has_gradients):
    definition = EditableFunction(total.__code__).definition
    tried = edits([(definition, scope_of(definition, [], has_gradients=has_gradients))])
    assert any("the factor 1 - b is missing" in edit.says for edit in tried) == has_gradients


class Sum:
    """The goal that total(3, 2) is 5, with a number of trials."""

    def __init__(self, trials):
        self.trials = trials

    def right(self, before):
        return frozenset({"sum"} if total(3, 2) == 5 else ())

    def is_reached(self, right):
        return bool(right)

    def is_over(self):
        self.trials -= 1
        return self.trials < 0


@pytest.mark.parametrize(("trials", "made"), [(100, ["line {}: the sign of the term b is wrong"]), (0, [])])
def test_a_search_ends_at_its_goal_or_when_it_is_over(trials, made):
    function = EditableFunction(total.__code__)
    found = Search(Sum(trials), [(function, scope_of(function.definition, []))], most=1)
    number = total.__code__.co_firstlineno + 1
    assert [str(edit) for edit in found.made] == [says.format(number) for says in made]
    assert found.is_successful == bool(made)
