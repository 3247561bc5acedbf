"""The GPT that adds numbers: its problems and its steps; and the results of chapter 27 that ship."""

import numpy as np
import pytest

from npformer.functional import cross_entropy
from npformer.learn.experiments import adaptation, addition, speculation
from npformer.learn.experiments.measured_runs import Measured, new_gpt, read_results
from npformer.models.gpt import GPT
from npformer.training.optimizer import Adam

SHIPPED = {
    adaptation.LORA: adaptation.measure_lora,
    adaptation.QUANTIZATION: adaptation.measure_quantization,
    addition.MEASURED: addition.measure,
    speculation.MEASURED: speculation.measure,
}


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: path.stem)
def test_nothing_of_the_results_that_ship_is_left_to_measure(shipped, tmp_path, monkeypatch):
    monkeypatch.setattr(GPT, "forward", None)
    path = tmp_path / "results.json"
    path.write_bytes(shipped.read_bytes())
    measured = SHIPPED[shipped](path)
    found = read_results(shipped, Measured)
    assert sorted(result.trial for each in measured.values() for result in each) == sorted(
        result.trial for result in found
    )
    assert all({result.seed for result in each} == {0, 1, 2} for each in measured.values())
    assert sum(result.seconds for result in found) < 300  # the bound of an experiment


def test_problems_are_sums():
    prompts, answers = addition.draw_problems(np.random.default_rng(0), 50)
    for prompt, answer in zip(prompts, answers, strict=True):
        x, y = "".join(addition.TOKENS[token] for token in prompt).rstrip("=").split("+")
        assert int(x) + int(y) == int("".join(map(str, answer)))


@pytest.fixture
def gpt():
    return new_gpt(addition.CONFIG, 0, np.float64)


def test_the_gradient_of_a_first_policy_step_is_that_of_the_weighted_log_probabilities(gpt, monkeypatch):
    """At the first update, the ratio is 1, and the model is the reference: only A ∇ log p is left.

    The model is given answers of which the first in each group is right.
    """
    monkeypatch.setattr(addition, "PROMPTS", 2)
    wanted = addition.draw_problems(np.random.default_rng(3), 2)
    prompts, drawn = (np.repeat(ids, addition.GROUP, 0) for ids in wanted)
    drawn[np.arange(len(drawn)) % addition.GROUP > 0, -1] += 1
    drawn %= 10
    monkeypatch.setattr(addition, "draw_answers", lambda *_: drawn)
    monkeypatch.setattr(addition, "clip_global_norm", lambda grads, norm: None)
    reference = new_gpt(addition.CONFIG, 0, np.float64)
    rng = np.random.default_rng(3)
    reward = addition.policy_step(
        gpt, reference, Adam(gpt), rng, addition.VARIANTS[0]._replace(learning_rate=0)
    )
    assert reward == 1 / addition.GROUP

    texts = np.concatenate([prompts, drawn], 1)
    weights = np.where(
        np.arange(len(texts)) % addition.GROUP == 0, np.sqrt(7), -np.sqrt(1 / 7)
    )  # (r - mean) / std

    def loss():
        logits, _ = gpt.forward(texts[:, :-1])
        each = [cross_entropy(row[5:], text[6:])[0] for row, text in zip(logits, texts, strict=True)]
        return np.mean(weights * each)

    v = np.random.default_rng(1).choice([-1.0, 1.0], gpt.values.size)
    slope, sides = gpt.grads @ v, []
    for step in (1e-6, -2e-6):
        gpt.values += step * v
        sides.append(loss())
    assert slope == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5)


def test_pairs_have_a_right_and_a_wrong_answer(gpt, monkeypatch):
    answers = [addition.draw_problems(np.random.default_rng(3), 6)[1]] * 2
    drawn = np.repeat(answers[0], addition.GROUP, 0)
    drawn[addition.GROUP + 3 :, -1] = (
        10  # no digit: the first prompt has right answers only, most others none
    )
    monkeypatch.setattr(addition, "draw_answers", lambda *_: drawn)
    better, worse = addition.draw_pairs(gpt, np.random.default_rng(3), 6)
    assert better.tolist() == [[*worse[0, :-1], answers[0][1, -1]]]
    assert worse[0, -1] == 10
