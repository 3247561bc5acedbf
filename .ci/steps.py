"""Everything that must hold before a change lands, from a bare machine.

    bash .ci/run [--only STEP ...] [--list]

The README's two commands run first, in a fresh clone: the first beside what downloads other environments, and
the second alone, with a budget of processor time. The other steps run two at a time. What a step prints
appears when it ends, and the times of all steps at the end.
After a step has failed, no other begins, and the exit status is 1.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared/multi30k"
IS_NIGHT = bool(os.environ.get("NPFORMER_NIGHTLY"))
BUDGETS = {} if IS_NIGHT else {"suite": 18 * 60}  # seconds of processor time
TOLERANCE = 4 / 3  # above which it is an error: one machine is slower than another
PIP = "python -m pip install --quiet"
ORACLES = (
    "'torch==2.13.0' 'transformers==5.23.0' 'jax>=0.5' 'playwright>=1.50' 'mpi4py>=4' mpich "
    "papermill nbconvert ipykernel"
)
LOWEST = "tests/functional tests/nn tests/plots tests/learn/course/test_latex.py"  # these use most of NumPy
LOWEST += " tests/kernels tests/checking" if IS_NIGHT else ""
SCORES = "" if IS_NIGHT else " 2"  # of the nine on the model card
MINUTES = "" if IS_NIGHT else " --minutes 4"  # for planted bugs, and as many for mutants


class Step(NamedTuple):
    """Commands that must succeed."""

    name: str
    commands: tuple[str, ...]  # for bash, in the checkout. $work is a folder, and $work/clone a fresh clone
    environment: str = ""  # the virtual environment in $work that is active
    after: str = ""  # a step before it in the list that must have ended


def first_steps():
    """Return the steps of the README's first block, and those that download other environments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```(?:bash|sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = block.group(1).splitlines() if block else []
    commands = [line for line in lines if line.strip() and not line.startswith("#")]
    tour, suite = (Step(n, ("cd $work/clone", c)) for n, c in zip(("tour", "suite"), commands, strict=True))
    # the installation of the checkout must not happen twice at a time, here and in the other steps
    tools = Step("tools", ("python3 -m venv $work/tools", f"$work/tools/bin/{PIP} -e '.[dev]'"))
    oracles = ("python3 -m venv $work/oracles", f"$work/oracles/bin/{PIP} -e '.[dev,site]' {ORACLES}")
    return [tools, tour, Step("oracles", oracles, after="tools")], [suite]


def other_steps():
    """Return the other steps, in the order in which they begin. Those that others wait for come early."""
    steps = [
        Step("lint", ("ruff check .", "ruff format --check ."), "tools", "tools"),
        Step("types", ("mypy",), "tools", "tools"),
        Step("planted bugs", (f"python tests/planted_bugs/run.py --changed{MINUTES}",), "tools", "tools"),
        Step(
            "the site with Sphinx",
            ("python -m pytest tests/learn/site tests/cli/test_site.py",),
            "oracles",
            "oracles",
        ),
        Step("the explorer in Chromium", ("bash .ci/explorer $work",), "oracles", "oracles"),
        Step("lowest versions", ("bash .ci/lowest_versions $work/lowest",), after="oracles"),
        Step(
            "nbgrader",
            ("python3 -m venv $work/nbgrader", f"$work/nbgrader/bin/{PIP} -e '.[test]' 'nbgrader>=0.9.5'"),
            after="lowest versions",
        ),
        Step(
            "PyTorch, transformers and JAX as oracles",
            ("python tests/oracle/make_golden.py --check", "python -m pytest -m 'torch or jax'"),
            "oracles",
            "oracles",
        ),
        Step("tests with the lowest versions", (f"python -m pytest {LOWEST}",), "lowest", "lowest versions"),
        Step(
            "an assignment in the real nbgrader",
            ("python -m pytest -n 0 -m nbgrader tests/learn/classroom",),
            "nbgrader",
            "nbgrader",
        ),
        Step(
            "two processes under mpirun",
            ("NPFORMER_MPI=1 python -m pytest -n 0 tests/training/test_mpi.py",),
            "oracles",
            "oracles",
        ),
        Step(
            "a lesson as a notebook, run by papermill and shown by nbconvert",
            (
                "cd $work",
                "npformer lesson 5.1 --notebook lesson.ipynb",
                "papermill --no-progress-bar lesson.ipynb executed.ipynb",
                "jupyter nbconvert --to html executed.ipynb",
            ),
            "oracles",
            "oracles",
        ),
        Step("sdist and wheel, and the wheel in a fresh environment", ("cd $work/clone", "bash .ci/release")),
    ]
    if IS_NIGHT:
        steps.append(
            Step("a GPU's stages on its stand-in", ("bash .ci/gpu $work/gpu --stand-in",), "tools", "tools")
        )
    else:  # the workflow of every night tries all mutants, and fails if one of them escapes
        command = f"python tests/mutation/run.py --changed{MINUTES}"
        commands = (f"{command} || echo 'a mutant escapes: add a test, or the run of every night fails'",)
        steps.append(Step("mutants of what changed", commands, "tools", "tools"))
    if CORPUS.is_dir():
        texts = shlex.join(f"{CORPUS}/raw/train.{language}.gz" for language in ("en", "de"))
        steps += [
            Step("300 steps on real text", (f"python tests/real_text.py {texts}",), "tools", "tools"),
            Step(
                "scores on the model card of the translator that ships",
                (f"python tests/shipped_score.py {shlex.quote(str(CORPUS))}{SCORES}",),
                "tools",
                "tools",
            ),
        ]
    return steps


class Result(NamedTuple):
    """What became of a step."""

    step: Step
    seconds: float
    processor: float  # seconds of processor time, with those of child processes
    is_right: bool


class Failed(Exception):
    """The error of a step that fails, or that does not begin since another has failed."""


class Run:
    """The steps of one run.

    Args:
        work: A folder for what they install and write.
    """

    def __init__(self, work):
        self.work = work
        self.results = []
        self.start = time.monotonic()

    def beside_each_other(self, steps):
        """Run steps two at a time, or raise Failed."""
        futures = {}

        def attempt(step):
            if step.after in futures:
                futures[step.after].result()
            self._run(step)

        with ThreadPoolExecutor(2) as pool:
            futures.update((step.name, pool.submit(attempt, step)) for step in steps)
        for future in futures.values():
            future.result()

    def _run(self, step):
        """Run a step and print its output, or raise Failed."""
        if not all(result.is_right for result in self.results):
            raise Failed
        environment = os.environ | {"work": str(self.work)}
        if step.environment:
            folder = self.work / step.environment
            environment |= {"VIRTUAL_ENV": str(folder), "PATH": f"{folder}/bin:{environment['PATH']}"}
        script = "\n".join(("set -euo pipefail", *step.commands))
        print(f"--- {step.name} begins ({time.monotonic() - self.start:.0f} s)", flush=True)
        start = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                ["bash", "-c", script], cwd=ROOT, env=environment, stdout=output, stderr=output
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace")
        seconds, processor = time.monotonic() - start, usage.ru_utime + usage.ru_stime
        budget = BUDGETS.get(step.name, float("inf"))
        is_right = process.returncode == 0 and processor <= TOLERANCE * budget
        self.results.append(Result(step, seconds, processor, is_right))
        verdict = "" if is_right else f"FAILED (status {process.returncode}, budget {budget} s): "
        times = f"{seconds:.0f} s, {processor:.0f} s of processor time"
        print(f"\n=== {verdict}{step.name}: {times}\n{text}", flush=True)
        if not is_right:
            raise Failed

    def print_times(self):
        """Print the times of all steps that have run."""
        print("\nseconds, and seconds of processor time:")
        for step, seconds, processor, is_right in self.results:
            print(f"{seconds:7.0f} {processor:7.0f}  {step.name}{'' if is_right else ': FAILED'}")
        processor = sum(result.processor for result in self.results)
        print(f"{time.monotonic() - self.start:7.0f} {processor:7.0f}  in all")


def chosen(steps, names):
    """Return the steps whose names contain one of the given, and those that must run before them."""
    found = {step.name for step in steps if any(name in step.name for name in names)}
    for step in reversed(steps):
        found |= {step.after} if step.name in found else set()
    return [step for step in steps if step.name in found]


def main():
    """Run the steps of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="STEP", help="steps with one of these in their names")
    parser.add_argument("--list", action="store_true", help="print the names of the steps")
    options = parser.parse_args()
    first, suite = first_steps()
    chosen_steps = chosen([*first, *suite, *other_steps()], options.only or [""])
    if options.list:
        print(*(step.name for step in chosen_steps), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), f"{work}/clone"], check=True)
        run = Run(Path(work))
        try:
            for part in (first, suite, other_steps()):
                run.beside_each_other([step for step in part if step in chosen_steps])
        except Failed:
            return 1
        finally:
            run.print_times()
    return 0


if __name__ == "__main__":
    sys.exit(main())
