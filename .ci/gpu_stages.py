"""Run npformer on a GPU, in stages in the order of their worth. Each leaves a JSON file as soon as it ends.

    bash .ci/gpu OUT [--stand-in] [--only STAGE ...]

Each stage is a process of its own with a limit of time, and writes what it has found after every item, so
that a crash, a hang or the end of the machine's time loses nothing. The exit status is 1 if a stage failed.
With --stand-in, the strict stand-in for CuPy takes the place of the GPU: the numbers of speed mean nothing,
but everything runs that would run there.
"""

import argparse
import json
import subprocess
import sys
import time
import traceback
import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGES = {  # the limit of each in seconds: those of the first five make six minutes
    "machine": 30,
    "tests": 100,
    "components": 70,
    "training": 70,
    "speed": 90,
    "optional": 200,
}
OPTIONAL = ("optional",)
LOSS_BARS = {"float64": 1e-12, "float32": 1e-5}  # relative
STEPS = 20


class Results:
    """The results of one stage, written into its JSON file after each item.

    Args:
        path: The file.
    """

    def __init__(self, path):
        self.path = path
        self.start = time.monotonic()
        self.content = {"complete": False, "failures": []}

    def add(self, name, value):
        """Store a result and write the file."""
        self.content[name] = value
        self.write()

    def fail(self, what):
        """Store a failure and write the file."""
        self.content["failures"].append(what)
        self.write()

    def attempt(self, name, function, *arguments):
        """Return what a function returns, or store the error that it raises as a failure and return None."""
        try:
            return function(*arguments)
        except Exception as error:  # whatever it is, the other items shall run
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            self.fail(f"{name}: {type(error).__name__} at {place}: {str(error)[:500]}")

    def measure(self, name, function, *arguments):
        """Store what a function returns, or its error as a failure."""
        self.add(name, self.attempt(name, function, *arguments))

    def write(self, *, complete=False):
        """Write the file."""
        self.content |= {"complete": complete, "seconds": round(time.monotonic() - self.start, 1)}
        self.path.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------
# 1. The machine


def machine(results, is_stand_in):
    """Store the card, its driver and the versions, and check that the card computes."""
    import cupy

    from npformer.bench.machine import describe

    results.add("machine", describe())
    if not is_stand_in:
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(0)
        results.add("card", properties["name"].decode())
        results.add("bytes", properties["totalGlobalMem"])
        results.add("driver", runtime.driverGetVersion())
        results.add("CUDA", runtime.runtimeGetVersion())
        results.add("compute capability", cupy.cuda.Device().compute_capability)
    results.add("1 + 1", int((cupy.ones(1) + 1).get()[0]))
    if results.content["1 + 1"] != 2:
        results.fail("1 + 1 is not 2")


# ------------------------------------------------------------------------------------------------------------
# 2. The device tests


def tests(results, is_stand_in):
    """Run the tests of the device, and store the messages of those that fail."""
    report = results.path.with_suffix(".xml")
    options = ["-m", "gpu", "-n", "0", "--tb=short", "-p", "no:cacheprovider", "--junitxml", str(report)]
    backend = [] if is_stand_in else ["--backend", "cupy"]
    folders = ["tests/test_device.py", "tests/kernels"] if is_stand_in else ["tests"]
    command = [sys.executable, "-m", "pytest", *options, *backend, *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if not report.exists():
        results.fail(f"pytest did not run: {(done.stdout + done.stderr)[-2000:]}")
        return
    suite = ElementTree.parse(report).getroot().find("testsuite")
    report.unlink()
    results.add("counts", {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")})
    for case in suite.iter("testcase"):
        for problem in (*case.iter("failure"), *case.iter("error")):
            results.fail(f"{case.get('classname')}::{case.get('name')}: {(problem.text or '')[-1500:]}")


# ------------------------------------------------------------------------------------------------------------
# 3. Every component of the gradient checker, on the device and on the host


def components(results, is_stand_in):
    """Compare outputs and gradients of every component on the device with those on the host."""
    from npformer.checking.cases import component_cases
    from npformer.checking.cases.device import HOST_ONLY, check_on_device

    largest = {}
    for case in (case for case in component_cases() if case.name not in HOST_ONLY):
        report = results.attempt(case.name, check_on_device, case)
        for row in report.rows if report else []:
            dtype = row.method.partition(",")[0]
            largest[dtype] = max(largest.get(dtype, 0.0), row.error)
            if not row.ok:
                results.fail(f"{case.name}, {row.tensor}, {row.method}: {row.error:.1e} {row.diagnosis}")
    results.add("largest difference", largest)


# ------------------------------------------------------------------------------------------------------------
# 4. Training


def training(results, is_stand_in):
    """Train models on the device and on the host, and compare losses, outputs and checkpoints."""
    for name in ("tiny", "small", "gpt128", "recurrent"):
        for dtype in LOSS_BARS:
            results.measure(f"{name}, {dtype}", _train_twice, results, name, dtype, is_stand_in)
    results.measure("checkpoints", _checkpoints, is_stand_in)


def _train_twice(results, name, dtype, is_stand_in):
    """Make the same steps on both, and return the losses and their largest relative difference."""
    import numpy as np

    steps = 3 if is_stand_in else STEPS
    models = {backend: _model(name, dtype, is_stand_in).to(backend) for backend in ("numpy", "cupy")}
    losses = {backend: _losses(model, name, steps, is_stand_in) for backend, model in models.items()}
    here, there = (np.array(losses[backend]) for backend in ("numpy", "cupy"))
    difference = float(np.abs(there / here - 1).max())
    if not difference <= LOSS_BARS[dtype]:
        results.fail(
            f"{name}, {dtype}: losses differ by {difference:.1e}, and the bar is {LOSS_BARS[dtype]:.0e}"
        )
    best = [_best_tokens(model, name, is_stand_in) for model in models.values()]
    if dtype == "float64" and not np.array_equal(*best):
        results.fail(f"{name}: the most probable tokens differ")
    return {"first loss": here[0], "last loss": here[-1], "largest difference": difference}


def _setup(name, is_stand_in):
    """Return the setup of the benchmark with this name, a smaller one on the stand-in."""
    from dataclasses import replace

    from npformer.bench.setups import SETUPS

    setup = SETUPS.find(name)
    if not is_stand_in:
        return setup
    small = {"d_model": 16, "n_heads": 2, "n_layers": 1, "vocab_size": 50, "sentences": 2, "length": 6}
    return replace(setup, **small, **({"d_ff": 32} if hasattr(setup, "tied") else {}))


def _model(name, dtype, is_stand_in):
    """Return a model of one of the setups of the benchmark, or a recurrent one with attention."""
    import numpy as np

    from npformer.models.recurrent import RecurrentConfig
    from npformer.models.registry import build

    if name != "recurrent":
        return _setup(name, is_stand_in).build().astype(dtype)
    width = 8 if is_stand_in else 128
    config = RecurrentConfig(source_vocab=50, target_vocab=50, d_model=width, d_hidden=width)
    return build(config, rng=np.random.default_rng(0)).astype(dtype)


def _batch(name, is_stand_in):
    from dataclasses import replace

    setup = _setup("tiny" if name == "recurrent" else name, is_stand_in)
    return (replace(setup, vocab_size=50) if name == "recurrent" else setup).batch()


def _losses(model, name, steps, is_stand_in):
    """Make training steps without dropout, which a device draws itself, and return their losses."""
    from npformer.training.optimizer import Adam
    from npformer.training.step import make_step

    optimizer, batch = Adam(model), _batch(name, is_stand_in)
    return [make_step(model, optimizer, [batch], None, 1e-3, clip_norm=1.0)[0] for _ in range(steps)]


def _best_tokens(model, name, is_stand_in):
    """Return the most probable next token at every position of a batch."""
    from npformer.backend import to_numpy

    return to_numpy(model.forward(*_batch(name, is_stand_in)[:-1])[0]).argmax(-1)


def _checkpoints(is_stand_in):
    """Train a translator on each backend, and compare what each checkpoint translates on both."""
    import tempfile

    from npformer.data.dataset import task_dataset
    from npformer.generation import Translator
    from npformer.models.transformer import TransformerConfig
    from npformer.storage.checkpoint import load_checkpoint
    from npformer.training import TrainingConfig, train

    dataset = task_dataset("reverse", n=100, length=5, vocab=12)
    sizes = {"d_model": 16, "d_ff": 32, "n_heads": 2, "n_layers": 1, "dropout": 0.0, "max_length": 16}
    model = TransformerConfig(source_vocab=12, target_vocab=12, **sizes)
    recipe = TrainingConfig(steps=4 if is_stand_in else 40, batch_size=16, schedule="constant")
    sentences = [dataset.source.decode(source) for source, _ in dataset.valid[:10]]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for written in ("numpy", "cupy"):
            train(f"{folder}/{written}", dataset, model, recipe, backend=written)
            checkpoint = load_checkpoint(f"{folder}/{written}/last.safetensors")
            here, there = (Translator.from_checkpoint(checkpoint, read) for read in ("numpy", "cupy"))
            assert here.translate(sentences) == there.translate(sentences), f"written with {written}"
            found[written] = here.translate(sentences)[0]
    return found


# ------------------------------------------------------------------------------------------------------------
# 5. Speed


def speed(results, is_stand_in):
    """Measure training steps beside PyTorch eager in float32, without TF32 for either."""
    names = ("tiny", "small", "base8k", "base37k", "gpt128", "gpt384", "gpt768", "gpt768 with 16 × 1,024")
    for name in names[4:5] if is_stand_in else names:
        results.measure(name, _measured, name, is_stand_in)


def _measured(name, is_stand_in, tf32=False):
    """Return the seconds and bytes of npformer and of PyTorch, and the device's share of npformer's step."""
    from dataclasses import replace
    from statistics import median

    from npformer.bench.measure import Task, measure, take_turns

    setup = _setup(name.partition(" with")[0], is_stand_in)
    if "1,024" in name:
        setup = replace(setup, name=name, sentences=16, length=1024)
    tasks = [Task(kind, setup, 1, 0.6, "cupy", tf32) for kind in ("npformer", "torch")]
    if is_stand_in:  # another process would not have the stand-in, nor is PyTorch there
        return {"npformer": measure(tasks[0])["seconds"]}
    own, torch = take_turns(tasks, 2, lambda task: None)
    seconds = [median(each["seconds"] for each in found) for found in (own, torch)]
    return {
        "npformer": seconds[0],
        "PyTorch": seconds[1],
        "PyTorch / npformer": seconds[1] / seconds[0],
        "bytes of npformer": own[0]["gpu_peak"],
        "bytes of PyTorch": torch[0]["gpu_peak"],
        "share in which the device waits": _waiting(setup, seconds[0]),
    }


SPIN = """
extern "C" __global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


def _waiting(setup, seconds):
    """Return the share of a step in which the device waits for Python.

    A kernel that only waits keeps the device busy while Python queues the whole step behind it. From its end
    to the end of the step, the device computes without waiting for Python.
    """
    import cupy

    from npformer.bench import own_step as module

    step = module.own_step(setup, workers=1, backend="cupy")
    step()
    spin, stream = cupy.RawKernel(SPIN, "spin"), cupy.cuda.get_current_stream()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cycles = int(2 * seconds * 2e9)  # for about two steps, at 2 GHz
    spin((1,), (1,), (cycles,))
    begin.record(stream)
    step()
    end.record(stream)
    end.synchronize()
    alone = cupy.cuda.get_elapsed_time(begin, end) / 1000
    return max(0.0, 1 - alone / seconds)


# ------------------------------------------------------------------------------------------------------------
# 6. Optional


def optional(results, is_stand_in):
    """Measure with TF32 for both, and train the tour's translator on the device."""
    if is_stand_in:
        return
    for name in ("small", "gpt384", "gpt768"):
        results.measure(f"{name}, TF32", _measured, name, False, True)
    start = time.monotonic()
    command = [sys.executable, "-m", "npformer", "tour", "--out", str(results.path.parent / "tour")]
    done = subprocess.run(
        [*command, "--backend", "cupy"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    results.add("tour", {"seconds": time.monotonic() - start, "end": done.stdout[-2000:]})
    if done.returncode:
        results.fail(f"the tour ended with status {done.returncode}: {done.stderr[-1000:]}")


# ------------------------------------------------------------------------------------------------------------


def run_stage(name, path, is_stand_in):
    """Run one stage in this process, and write its file."""
    device = nullcontext()
    if is_stand_in:
        sys.path.insert(0, str(ROOT / "tests" / "helpers"))
        import strict_cupy

        device = strict_cupy.installed()
    results = Results(path)
    with device:
        results.write()
        globals()[name](results, is_stand_in)
    results.write(complete=True)


def main():
    """Run the stages of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder of the results")
    parser.add_argument("--stand-in", action="store_true", help="use the stand-in for CuPy")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES), metavar="STAGE")
    parser.add_argument("--here", choices=STAGES, help=argparse.SUPPRESS)  # one stage, in this process
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    files = {name: options.out / f"{place}-{name}.json" for place, name in enumerate(STAGES, 1)}
    if options.here:
        run_stage(options.here, files[options.here], options.stand_in)
        return 0
    all_right = True
    for name in options.only:
        command = [sys.executable, __file__, str(options.out), "--here", name]
        start = time.monotonic()
        try:
            limit = STAGES[name] * (4 if options.stand_in else 1)
            done = subprocess.run([*command, *["--stand-in"] * options.stand_in], timeout=limit, check=False)
            end = f"status {done.returncode}"
        except subprocess.TimeoutExpired:
            end = f"ended by its limit of {limit} s"
        found = json.loads(files[name].read_text(encoding="utf-8")) if files[name].exists() else {}
        problems = found.get("failures", ["it wrote nothing"])
        is_right = bool(found.get("complete")) and not problems
        all_right &= is_right or name in OPTIONAL
        print(
            f"{name}: {'right' if is_right else 'WRONG'}, {time.monotonic() - start:.0f} s, {end}", flush=True
        )
        for problem in problems[:20]:
            print(f"  {problem}", flush=True)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
