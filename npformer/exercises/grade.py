"""grade: hold the learner's functions against the package, and say what the first difference looks like."""

import ast
import inspect
import traceback
import warnings
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from npformer.backend import is_array
from npformer.errors import UserError
from npformer.exercises.compare import TOLERANCE, compare
from npformer.exercises.exercise import Exercise, Gradients, Values
from npformer.exercises.fault import Fault, Verdict
from npformer.exercises.mutants import explain
from npformer.exercises.watch import Watched
from npformer.gradcheck import gradcheck
from npformer.gradcheck.diagnosis import known_arrays, named_numbers
from npformer.gradcheck.scene import same
from npformer.gradcheck.subject import Subject

SEED = 11  # of the trials' inputs


def grade(exercise: Exercise, functions: dict[str, Callable], file: str = "") -> Verdict:
    """Run every trial of an exercise on these functions, up to the first that fails.

    file is where they come from, so that an error can be told with its line.
    """
    own = SimpleNamespace()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            own = _watched(exercise, functions)
            checks, worst = 0, 0.0
            for trial in exercise.trials:
                if isinstance(trial, Gradients):
                    more, error = _gradients(exercise, trial, own)
                else:
                    more, error = _values(exercise, trial, own)
                checks, worst = checks + more, max(worst, error)
    except Fault as fault:
        return fault.verdict
    except Exception as error:  # whatever the learner's code raises
        nothing = [watched.name for watched in vars(own).values() if watched.returned_nothing]
        if (
            nothing and "NoneType" in str(error) and not _lines(error, file)
        ):  # which its caller could not take
            return Verdict(
                False, f"{nothing[0]} returns nothing (None): fill in its body, and end it with a return"
            )
        return Verdict(False, describe_error(error, file), _clue_of_error(error))
    return Verdict(True, f"solved: {checks} checks, largest relative error {worst:.0e}")


def _clue_of_error(error):
    """What an error that NumPy raises looks like."""
    text = str(error)
    if isinstance(error, ValueError) and any(word in text for word in ("matmul", "broadcast", "reshape")):
        return ["shapes that do not fit: one of the two transposed, or two arrays that have changed places?"]
    return []


def describe_error(error: BaseException, file: str) -> str:
    """What was raised, in one sentence, with the line of the learner's file."""
    if isinstance(error, UserError) and not _lines(error, file):
        return str(error)
    line = (
        getattr(error, "lineno", None)
        if isinstance(error, SyntaxError)
        else next(iter(_lines(error, file)), None)
    )
    where = f"line {line} raised" if line else "your code raised"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    first = message.splitlines()[0] if message else ""
    return f"{where} {type(error).__name__}" + (f": {first}" if first else "")


def _lines(error, file):
    """The lines of the learner's file that the error passed through, the innermost first."""
    return [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__)[::-1] if frame.filename == file
    ]


def _watched(exercise, functions):
    """The learner's functions, each watched, under their names."""
    own = {}
    for name in exercise.solution:
        function = functions.get(name)
        if not callable(function):
            raise Fault(f"there is no function {name} in your file: keep its name as it was")
        taken = inspect.signature(function).parameters.values()
        n_taken = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in taken)
        written = _parameters(exercise, name)
        if n_taken < len(written) and not any(p.kind == p.VAR_POSITIONAL for p in taken):
            raise Fault(f"{name} takes {n_taken} arguments and must take ({', '.join(written)})")
        own[name] = Watched(name, function, writes=exercise.writes)
    return SimpleNamespace(**own)


def _parameters(exercise, name):
    """The names of the positional arguments that a function of the stub takes."""
    tree = ast.parse(exercise.stub)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return [argument.arg for argument in function.args.args]


def _values(exercise, trial: Values, own):
    """Compare what comes out with what the package gives. Returns (checks, largest relative error)."""

    def run(functions):
        return trial.run(functions, np.random.default_rng(SEED))

    right = run(SimpleNamespace(**exercise.solution))
    found = run(own)
    arrays = {name: array for watched in vars(own).values() for name, array in watched.arrays.items()}
    worst = 0.0
    for name, value in right.items():
        mutant = _explainer(exercise, run, found, name)
        compare(
            _labelled(name, trial),
            value,
            found[name],
            who=_who(own),
            arrays=arrays,
            numbers=trial.numbers,
            mutant=mutant,
        )
        worst = max(worst, _error(value, found[name]))
    return len(right), worst


def _gradients(exercise, trial: Gradients, own):
    """Compare with the package's gradients, then check. Returns (checks, largest relative error)."""

    def subject(functions):
        rng = np.random.default_rng(SEED)
        thing, *inputs = trial.make(functions, rng)
        return Subject(thing, inputs, trial.settings, randomize=True, rng=rng)

    def pull(functions):
        made = subject(functions)
        return made.pull(np.array(dy), made.run()[1])

    package = SimpleNamespace(**exercise.solution)
    reference = subject(package)
    y, cache = reference.run()
    dy = np.random.default_rng(SEED + 1).standard_normal(np.shape(y)) if np.ndim(y) else 0.8
    right = reference.pull(np.array(dy), cache)
    found = _pull(subject(own), dy, own)
    cache = reference.run()[1]
    arrays, numbers = known_arrays(reference, cache), named_numbers(reference, dy)
    settings = {
        name: value for name, value in getattr(cache, "_asdict", dict)().items() if isinstance(value, float)
    }
    numbers += [
        (value, f"the cache's {name}") for name, value in settings.items() if value > 0 and value != 1
    ]
    names = {tensor: gradient_name(reference, tensor) for tensor in right}
    for tensor, value in right.items():
        others = {names[other]: right[other] for other in right if other != tensor}
        known = {"dy": dy, "arrays": arrays, "others": others, "numbers": numbers}
        mutant = _explainer(exercise, pull, found, tensor)
        compare(_labelled(names[tensor], trial), value, found[tensor], who=_who(own), mutant=mutant, **known)
    _keeps_precision(trial, own)
    return _check(trial, own)


def _pull(subject, dy, own):
    """The learner's gradients by name, or a Fault that says what was returned instead."""
    returned = []
    backward = subject.backward

    def noted(*args):
        returned.append(backward(*args))
        return returned[-1]

    subject.backward = noted
    try:
        return subject.pull(np.array(dy), subject.run()[1])
    except UserError:
        if not returned:
            raise
        what = returned[-1]
        due = [f"d{name}" for name in subject.real_inputs]
        if what is None:
            raise Fault(
                f"{_who(own)} returns nothing (None): fill in its body and return {', '.join(due)}"
            ) from None
        if isinstance(what, list):
            raise Fault(
                f"{_who(own)} returns a list: return the arrays ({', '.join(due)}) as a tuple"
            ) from None
        many = f"{len(what)} gradients" if isinstance(what, tuple) else "1 gradient"
        raise Fault(
            f"{_who(own)} returns {many} and must return {len(due)}, one for each array: ({', '.join(due)})"
        ) from None


def _check(trial, own):
    """The gradient checker has the last word: it knows the forward pass alone."""
    thing, *inputs = trial.make(own, np.random.default_rng(SEED))
    report = gradcheck(thing, *inputs, seed=SEED, **trial.settings)
    if not report.ok:
        row = report.worst
        where = f", first at {list(row.entry)}" if row.entry is not None else ""
        raise Fault(f"the gradient check fails at {row.tensor}{where}", (row.diagnosis,))
    return len(report.rows), max(row.error for row in report.rows)


def _keeps_precision(trial, own):
    """float32 in, float32 out."""
    thing, *inputs = trial.make(own, np.random.default_rng(SEED))
    low = [x.astype(np.float32) if is_array(x) and x.dtype.kind == "f" else x for x in inputs]
    forward, backward = thing if isinstance(thing, tuple) else (thing.forward, thing.backward)
    settings = {k: np.random.default_rng(v) if k == "rng" else v for k, v in trial.settings.items()}
    y, cache = forward(*low, **settings)
    if np.ndim(y) and y.dtype != np.float32:
        return  # the layer itself holds float64
    returned = backward(np.ones_like(y) if np.ndim(y) else 1.0, cache)
    for dx in returned if isinstance(returned, tuple) else (returned,):
        if is_array(dx) and dx.dtype != np.float32:
            raise Fault(
                f"{_who(own)} returns {dx.dtype} where it is given float32, with the right numbers",
                ("dtype wrong: keep that of dy (math.sqrt, not np.sqrt(64); np.zeros with a dtype)",),
            )


def _explainer(exercise, run, found, name):
    """A function that looks for the change of the package's own code that gives what was found.

    All results up to the first wrong one, `name`, must agree; there may be other mistakes after it.
    """
    names = list(found)[: list(found).index(name) + 1]

    def agrees(functions):
        try:
            result = run(functions)
            return all(_alike(result[name], found[name]) for name in names)
        except Exception:  # a changed function may fail in any way
            return False

    # the package's methods say self where the stub has layer
    own_name = _parameters(exercise, exercise.functions[0])[0]
    return lambda: explain(exercise.solution, agrees).replace("self.", f"{own_name}.")


def _alike(a, b):
    """Whether two results agree, NaN with NaN."""
    if not is_array(a) or not is_array(b) or a.dtype.kind not in "bif" or b.dtype.kind not in "bif":
        return type(a) is type(b) and bool(np.all(a == b))
    if a.shape != b.shape:
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    ends = np.isfinite(a)
    return np.array_equal(ends, np.isfinite(b)) and same(a[ends], b[ends], TOLERANCE)


def _error(right, found):
    """The largest difference, relative to the largest number."""
    if not is_array(right) or right.dtype.kind != "f":
        return 0.0
    finite = np.isfinite(right)
    scale = max(np.abs(right[finite]).max(initial=0), np.finfo(float).tiny)
    return float(np.abs(right[finite] - np.asarray(found)[finite]).max(initial=0) / scale)


def gradient_name(subject, tensor):
    """dx for an input, weight.grad for a parameter."""
    return f"{tensor}.grad" if tensor in subject.parameters else f"d{tensor}"


def _labelled(name, trial):
    return f"{name} ({trial.label})" if trial.label else name


def _who(own):
    return " or ".join(vars(own))
