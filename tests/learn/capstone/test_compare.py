"""The comparison of the assembled Transformer with the package's: each wrong part is found by its name."""

import numpy as np
import pytest
from capstone_solutions import change, solve
from mistake_tables import count_steps

from npformer.learn.capstone.compare import TOGETHER, assembled_results, compare_parts
from npformer.learn.capstone.functions import collect_functions
from npformer.learn.capstone.parts import NAMES
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks.process import check_here
from npformer.learn.tasks.verdict import Verdict

# for each part, an exercise, and a mistake in its solution: the old and the new text
MISTAKES = {
    "embedding": ("embedding-backward", "scale * dy", "dy"),
    "positions": ("sinusoids", "10000", "1000"),
    "softmax": ("softmax-backward", "y * (dy - ", "(dy - "),
    "attention": ("attention-backward", " * scale", ""),
    "masks": ("causal-mask", "<= position", "< position"),
    "heads": ("multi-head", "(q, k, v, mask)", "(q, v, k, mask)"),
    "layer norm": ("layer-norm", "+ bias", "- bias"),
    "residual": ("residual", "x + dropped", "dropped"),
    "feed-forward": ("feed-forward", "h, hidden", "_, hidden"),
    "cross-entropy": ("cross-entropy", "real.sum()", "len(flat)"),
    "Adam": ("adam-step", "np.sqrt(v_hat)", "v_hat"),
    "greedy search": ("greedy", "argmax", "argmin"),
}


def test_every_part_has_a_mistake():
    assert tuple(MISTAKES) == NAMES


def test_the_reference_solutions_agree_one_by_one_and_together(tmp_path):
    learner, parts = solve(tmp_path)
    assert len(parts) == 12
    assert compare_parts(learner, parts) == []


def test_every_wrong_part_is_named(tmp_path, monkeypatch):
    """Each part is compared with all others the package's, so that the mistakes do not hide each other."""
    monkeypatch.setattr(
        "npformer.learn.capstone.compare.check",
        lambda tasks, task, file, seconds: check_here(tasks, task, str(file)),
    )
    count_steps(monkeypatch, edits=50, mistakes=50)
    learner, parts = solve(tmp_path)
    for mistake in MISTAKES.values():
        change(learner, *mistake)
    findings = compare_parts(learner, parts)
    assert [finding.part for finding in findings] == list(NAMES)
    for finding in findings:
        exercise, *_ = MISTAKES[finding.part]
        assert finding.exercise.name == exercise
        assert not finding.graded.solved
        # the forward passes of these three are right
        in_backward = finding.part in ("embedding", "softmax", "attention")
        assert ("the gradient of" in finding.verdict.message) == in_backward, finding.verdict.message
        assert learner.state(EXERCISES.find(exercise)) == "started", "it is not solved any more"


# files that misbehave: each with the exercise that it claims to solve, as NAME
HOSTILE = {
    "sinusoids": "import sys\nsys.exit(3)\n",
    "softmax": "def softmax(x:\n",
    "attention": "def NAME(*arguments):\n    while True:\n        pass\n",
    "layer-norm": "def NAME(x, *arguments):\n    return x * float('nan')\n",
    "residual": "def NAME(*arguments, **settings):\n    raise KeyboardInterrupt\n",
    "feed-forward": "import os\nos._exit(0)\n",
    "cross-entropy": "x = 3\n",
    "greedy": "import numpy as np\nnp.exp = None\nNAME = lambda *arguments, **settings: np.exp(0)\n",
}


def test_code_that_misbehaves_does_no_harm_and_is_named(tmp_path, monkeypatch):
    """The parts that are right are compared as well, also after one that ended the process."""
    monkeypatch.setattr(
        "npformer.learn.capstone.compare.check",  # which has tests of its own with such files
        lambda tasks, task, file, seconds: Verdict(task.name not in HOSTILE, "judged"),
    )
    learner, parts = solve(tmp_path)
    for name, text in HOSTILE.items():
        exercise = EXERCISES.find(name)
        text = text.replace("NAME", next(iter(exercise.solution)))
        learner.file(exercise).write_text(text, encoding="utf-8")
    findings = compare_parts(learner, parts, seconds=2)
    assert [finding.exercise.name for finding in findings] == list(HOSTILE)
    assert all("\n" not in finding.verdict.message for finding in findings)
    assert np.exp(0.0) == 1.0


def test_code_that_prints_is_right_and_prints_nothing_here(tmp_path, capfd):
    learner, parts = solve(tmp_path, "softmax")
    change(learner, "softmax", "    # solution\n", "    print('noise')\n")
    assert compare_parts(learner, parts) == []
    assert "noise" not in capfd.readouterr().out


def test_parts_that_disturb_each_other_are_found_together(tmp_path):
    """A file that changes a module for all others is right alone, and wrong beside the others."""
    learner, parts = solve(tmp_path, "embedding", "softmax")
    first, second = (learner.file(EXERCISES.find(name)) for name in ("embedding", "softmax"))
    first.write_text(first.read_text() + "\nimport sys\nsys.modules['shared'] = 1\n")
    broken = second.read_text() + "\nimport sys\nif 'shared' in sys.modules:\n    softmax = lambda x: 0 * x\n"
    second.write_text(broken)
    # one process runs the parts in turn, so that the softmax is found already as a single part
    (finding,) = compare_parts(learner, parts)
    assert finding.part in ("softmax", TOGETHER)


@pytest.mark.parametrize("attention", ["the package's", "the learner's", "an earlier file"])
def test_the_learners_softmax_computes_in_each_attention(attention, tmp_path):
    """The parts call the learner's functions, not the package's own, whichever way they import them."""
    own = ["softmax"] if attention == "the package's" else ["softmax", "attention"]
    learner, _ = solve(tmp_path, *own)
    (tmp_path / "softmax.py").write_text("def softmax(x):\n    raise RuntimeError('called')\n")
    if attention == "an earlier file":
        change(
            learner,
            "attention",
            "from npformer import functional as F",
            "from npformer.functional import softmax",
        )
        change(learner, "attention", "F.softmax(", "softmax(")
    with pytest.raises(RuntimeError, match="called"):
        assembled_results(collect_functions(tmp_path, own))
