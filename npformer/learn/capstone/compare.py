"""Hold the assembled Transformer against the package's: output, loss, every gradient, Adam and greedy search.

The child process assembles a small Transformer for each part of the learner, in which all other parts are the
package's, and one with all the learner's parts. The parent process compares what they compute with the
package's Transformer, so a wrong part is found by its name. Then the grader of the exercises says what is
wrong in it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from npformer import functional as F
from npformer.data.loader import Batch, make_batch
from npformer.data.vocabulary import PAD, SPECIALS
from npformer.generation import greedy
from npformer.language import GRADER, later, phrase, say
from npformer.learn.capstone.assemble import AssembledTransformer, capstone_config, compute_loss
from npformer.learn.capstone.functions import Functions, guarded
from npformer.learn.capstone.parts import Part
from npformer.learn.exercises import EXERCISES, Exercise, Verdict
from npformer.learn.exercises.agreement import floor_of
from npformer.learn.tasks import Fault, Folder
from npformer.learn.tasks.answer import DamagedAnswer
from npformer.learn.tasks.compare import compare
from npformer.learn.tasks.process import SECONDS, ask_child, check
from npformer.models.transformer import Transformer
from npformer.training.optimizer import Adam

CONFIG = capstone_config(
    source_vocab=12, target_vocab=11, d_model=8, d_ff=12, n_heads=2, n_layers=2, max_length=16
)
SEEDS = (49, 129)  # of weights with which sentences end early and late, and forbidden tokens are probable
TOGETHER = later("all your parts together")
GRADIENT = "the gradient of "
UNREADABLE = later("its results cannot be read")
LONGEST = 8  # tokens of a translation
EPS = 1e-3  # of Adam: a gradient that is 0 but for rounding errors then hardly moves its parameter


@dataclass(frozen=True)
class Finding:
    """A wrong part.

    Args:
        part: The name of the part, or TOGETHER.
        verdict: What differs from the package's Transformer.
        exercise: The exercise in which the grader finds the mistake, or None if it finds none.
        graded: What the grader says about it.
    """

    part: str
    verdict: Verdict
    exercise: Exercise | None = None
    graded: Verdict | None = None


def compare_parts(folder: Folder, parts: Sequence[Part], seconds: float = SECONDS) -> list[Finding]:
    """Compare each part of the learner, and all of them together, with the package's Transformer.

    Args:
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.
        seconds: The limit on processor time of each child process.

    Returns:
        The parts that are wrong, in their order. Empty if there are none.
    """
    verdicts: dict[str, Verdict] = {}
    remaining = [part.name for part in parts]
    while remaining:
        checked = _compare_some(folder.path, remaining, seconds)
        verdicts |= checked
        remaining = [name for name in remaining if name not in checked]
    wrong = [part for part in parts if not verdicts[part.name].solved]
    if not wrong and len(parts) > 1:
        verdict = _compare_some(folder.path, [TOGETHER, *verdicts], seconds).get(TOGETHER)
        return [] if verdict is None or verdict.solved else [Finding(TOGETHER, verdict)]
    return [_diagnosed(folder, part, verdicts[part.name], seconds) for part in wrong]


def _diagnosed(folder: Folder, part: Part, verdict: Verdict, seconds: float) -> Finding:
    """Return the finding, with what the grader says about the first exercise of the part that is wrong."""
    for exercise in part.exercises:
        graded = check(EXERCISES, exercise, folder.file(exercise), seconds)
        if not graded.solved:
            folder.set_solved(exercise, False)
            return Finding(part.name, verdict, exercise, graded)
    return Finding(part.name, verdict)


def _compare_some(folder: Path, names: Sequence[str], seconds: float) -> dict[str, Verdict]:
    """Return a verdict on each part up to the one that ends the child process.

    Args:
        folder: The folder of the learner's files.
        names: The names of the parts. If TOGETHER is the first, the others are assembled together.
        seconds: The limit on processor time.
    """
    function = "npformer.learn.capstone.compare:observe_parts"
    answer = ask_child(function, [str(folder), *names], folder, seconds=seconds)
    verdicts: dict[str, Verdict] = {}
    for observation in answer.values:
        match observation:
            case {"begin": str(name)} if name in names:
                problem = answer.problem or phrase(UNREADABLE, GRADER)
                verdicts[name] = Verdict(False, problem, printed=answer.printed)
            case {"error": str(error)} if verdicts:
                verdicts[[*verdicts][-1]].message = error
            case {"results": dict(found)} if verdicts:
                verdicts[[*verdicts][-1]] = _judge(found)
    if not verdicts:
        verdicts[names[0]] = Verdict(False, answer.problem or phrase(UNREADABLE, GRADER))
    return verdicts


def _judge(found: dict[str, Any]) -> Verdict:
    """Compare the results of an assembled Transformer with those of the package's."""
    right = package_results()
    damaged = Verdict(False, say("its results cannot be read: does it write into open files?"))
    if list(found) != list(right):
        return damaged
    floor = floor_of({name: value for name, value in right.items() if name.startswith(GRADIENT)})
    try:
        for name, value in right.items():
            small = floor if name.startswith(GRADIENT) else 0.0
            compare(_shown(name), value, found[name], who=say("the Transformer"), floor=small)
    except Fault as fault:
        return fault.verdict
    except DamagedAnswer:
        return damaged
    return Verdict(True, say("{count} results agree", count=len(right)))


def _shown(name: str) -> str:
    """Return the name of a result in the current language."""
    what, _, seed = name.removesuffix(")").rpartition(" (seed ")
    parameter = what.removeprefix(GRADIENT)
    is_gradient = parameter != what
    shown = say("the gradient of {name}", name=parameter) if is_gradient else phrase(what, GRADER)
    return say("{name} (seed {seed})", name=shown, seed=seed)


# ---------------------------------------------------------------------------------------------------------
# What is compared. The child process runs this with the learner's functions.


def observe_parts(folder: str, *names: str) -> Iterator[dict[str, Any]]:
    """Yield the results of the Transformer with each part, after an announcement of the part.

    Args:
        folder: The folder of the learner's files.
        names: The names of the parts. If TOGETHER is the first, the others are assembled together.
    """
    trials = [(name, [name]) for name in names] if names[0] != TOGETHER else [(TOGETHER, list(names[1:]))]
    for name, own in trials:
        yield {"begin": name}
        yield from guarded(Path(folder), own, lambda functions: {"results": assembled_results(functions)})


def assembled_results(functions: Functions) -> dict[str, Any]:
    """Return what the assembled Transformer computes, by name."""

    def loss_of(logits: Any, targets: Any) -> tuple[float, Any]:
        return compute_loss(functions, logits, targets)

    def step_of(adam: Adam) -> Callable[[], Any]:
        return partial(functions.adam_step, adam, 0.01)

    model_of = partial(AssembledTransformer, functions, CONFIG, dtype=np.float64)
    return _results(model_of, loss_of, functions.greedy, step_of)


@cache
def package_results() -> dict[str, Any]:
    """Return what the package's Transformer computes, by name."""

    def loss_of(logits: Any, targets: Any) -> tuple[float, Any]:
        loss, loss_cache = F.cross_entropy(logits, targets, pad_id=PAD)
        return float(loss), F.cross_entropy_backward(1.0, loss_cache)

    def step_of(adam: Adam) -> Callable[[], Any]:
        return partial(adam.step, 0.01)

    return _results(partial(Transformer, CONFIG, dtype=np.float64), loss_of, greedy, step_of)


def _results(model_of: Any, loss_of: Any, search: Any, step_of: Any) -> dict[str, Any]:
    """Return what a Transformer computes, by name: output, loss, gradients, translations and parameters.

    Args:
        model_of: model_of() returns a new Transformer.
        loss_of: loss_of(logits, targets) returns the loss and its gradient.
        search: Greedy search.
        step_of: step_of(adam) returns a function that makes a step of Adam.
    """
    results: dict[str, Any] = {}
    for seed in SEEDS:
        model, batch = model_of(), _batch()
        _draw(model, seed)
        logits, cache = model.forward(batch.source, batch.target_in)
        loss, dlogits = loss_of(logits, batch.target_out)
        found = {later("the logits"): logits, later("the loss"): loss}
        sentences = search(model, batch.source, max_length=LONGEST)
        step = step_of(Adam(model, eps=EPS))
        model.backward(dlogits, cache)
        found |= {f"{GRADIENT}{name}": np.array(p.grad) for name, p in model.named_parameters()}
        found[later("the translations of greedy search")] = sentences
        found[later("the parameters after two steps of Adam")] = _after_two_steps(model, step)
        results |= {f"{name} (seed {seed})": value for name, value in found.items()}
    return results


def _after_two_steps(model: Any, step: Callable[[], Any]) -> Any:
    """Return the parameters after two steps of the optimizer, whose gradients differ."""
    step()
    model.grads[...] = model.grads[::-1].copy()
    step()
    return np.concatenate([parameter.value.reshape(-1) for parameter in model.parameters()])


def _draw(model: Any, seed: int) -> None:
    """Draw all parameters, also gains and biases. The translations then differ, and some of them end."""
    rng = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        drawn = rng.standard_normal(parameter.shape)
        if len(parameter.shape) > 1:
            parameter.value[...] = 0.7 * drawn
        else:
            parameter.value[...] = name.endswith("gain") + 0.3 * drawn


def _batch() -> Batch:
    """Return sentences of different lengths."""
    rng = np.random.default_rng(1)
    first = len(SPECIALS)
    lengths = ((5, 3), (2, 6), (1, 1), (7, 4))
    return make_batch(
        [
            (rng.integers(first, 12, source).tolist(), rng.integers(first, 11, target).tolist())
            for source, target in lengths
        ]
    )
