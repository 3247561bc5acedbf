"""Run npformer on a GPU, in stages in the order of their worth. Each leaves a JSON file as soon as it ends.

    bash .ci/gpu OUT [--stand-in] [--only STAGE ...]

Each stage is a process of its own with a limit of time, and writes what it has found after every item, so
that a crash, a hang or the end of the machine's time loses nothing. The stages that compare numbers run side
by side, since they spend most of their time with compiling kernels. The stages that measure time run alone.
The exit status is 1 if a stage failed.
With --stand-in, the strict stand-in for CuPy takes the place of the GPU: the numbers of speed mean nothing,
but everything runs that would run there.
"""

import argparse
import gc
import json
import os
import re
import subprocess
import sys
import time
import traceback
import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGES = {  # the limit of each in seconds: the first five take at most six minutes
    "machine": 30,
    "tests": 150,
    "components": 150,
    "training": 150,
    "speed": 180,
    "optional": 200,
}
GROUPS = (
    ("machine",),
    ("tests", "components", "training"),
    ("speed",),
    ("optional",),
)  # side by side in each
OPTIONAL = ("optional",)
LOSS_BARS = {"float64": 1e-12, "float32": 1e-5}  # relative
# with NumPy alone, the losses of this model differ by 3.1e-5 between OPENBLAS_CORETYPE=Haswell and SkylakeX
SMALL_FLOAT32_BAR = 6e-5
STEPS = 20
LONG = "gpt768 with 16 × 1,024 tokens"


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
    options = ["-m", "gpu", "--tb=short", "-p", "no:cacheprovider", "--junitxml", str(report)]
    processes = ["-n", "0"] if is_stand_in else ["-n", "4", "--dist", "load", "--backend", "cupy"]
    found = (path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path.parent.name != "helpers")
    files = [str(path) for path in found if re.search(r"\bdevice\b", path.read_text(encoding="utf-8"))]
    command = [sys.executable, "-m", "pytest", *options, *processes, *files]
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
    bar = SMALL_FLOAT32_BAR if (name, dtype) == ("small", "float32") else LOSS_BARS[dtype]
    if not difference <= bar:
        results.fail(f"{name}, {dtype}: losses differ by {difference:.1e}, and the bar is {bar:.0e}")
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
    from npformer.models.transformer import TransformerConfig
    from npformer.pretrained import Translator
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
            translations = here.translate(sentences, beam=1)
            assert translations == there.translate(sentences, beam=1), f"written with {written}"
            found[written] = translations[0]
    return found


# ------------------------------------------------------------------------------------------------------------
# 5. Speed


def speed(results, is_stand_in):
    """Measure training steps beside PyTorch eager in float32, without TF32 for either."""
    names = ("tiny", "small", "base8k", "base37k", "gpt128", "gpt384", "gpt768", LONG)
    _compare(results, names[4:5] if is_stand_in else names, is_stand_in, tf32=False)


def _compare(results, names, is_stand_in, *, tf32):
    """Measure all setups in turn with npformer and with PyTorch, in two rounds of one process for each."""
    ending = ", TF32" if tf32 else ""
    if is_stand_in:  # another process would not have the stand-in, nor is PyTorch there
        for name in names:
            results.add(name, _measured("npformer", name, is_stand_in, tf32))
        return
    rounds = {(kind, name): [] for kind in ("npformer", "torch") for name in names}
    for _ in range(2):
        for kind in ("npformer", "torch"):
            command = [sys.executable, __file__, str(results.path.parent), "--measure", kind, *names]
            environment = os.environ | {"CUPY_TF32": str(int(tf32))}
            with subprocess.Popen(
                [*command, *["--tf32"] * tf32], env=environment, stdout=subprocess.PIPE, text=True
            ) as process:
                for line in process.stdout:
                    name, found = json.loads(line)
                    if "failure" in found:
                        results.fail(f"{name}{ending}, {kind}: {found['failure']}")
                        continue
                    rounds[kind, name].append(found)
                    results.add(name + ending, _row(rounds["npformer", name], rounds["torch", name]))
            if process.returncode:
                results.fail(f"the process of {kind} ended with status {process.returncode}")


def _row(own, torch):
    """Return the medians of what was measured so far of one setup."""
    from statistics import median

    done = {who: found for who, found in (("npformer", own), ("PyTorch", torch)) if found}
    seconds = {who: median(each["seconds"] for each in found) for who, found in done.items()}
    row = {"seconds": seconds}
    if own and torch:
        row["PyTorch / npformer"] = seconds["PyTorch"] / seconds["npformer"]
    for name in ("gpu_peak", "loss", "on the device"):
        row[name] = {who: found[0][name] for who, found in done.items()}
    return row


def measure_all(kind, names, tf32):
    """Measure setups in this process, and print a line of JSON for each: its name and what was found."""
    for name in names:
        try:
            found = _measured(kind, name, False, tf32)
        except Exception as error:  # whatever it is, the other setups shall be measured
            found = {"failure": f"{type(error).__name__}: {str(error)[:500]}"}
        print(json.dumps([name, found]), flush=True)


def _measured(kind, name, is_stand_in, tf32):
    """Return what `measure` finds for a setup, and what the device does in a step."""
    from dataclasses import replace

    from npformer.bench.measure import Task, import_kind, measure

    setup = _setup(name.partition(" with")[0], is_stand_in)
    if name == LONG:
        setup = replace(setup, name=name, sentences=16, length=1024)
    task = Task(kind, setup, 1, 0.6, "cupy", tf32)
    found = measure(task)
    if is_stand_in:
        return found
    import cupy
    import torch

    step = import_kind(task).make()
    step(), step()
    found["on the device"] = _on_device(step, found["seconds"])
    del step
    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return found


def _on_device(step, seconds):
    """Return the operations of a step on the device, their time, and the share in which the device waits."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    steps = 5
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:  # it sees the kernels of CuPy as well
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    events = [event for event in profiler.events() if str(event.device_type).endswith("CUDA")]
    kernels = [event for event in events if not event.name.startswith("Optimizer.")]  # that is a whole step
    busy = sum(event.device_time for event in kernels) / 1e6 / steps
    return {"operations": len(kernels) / steps, "busy": busy, "waiting": 1 - busy / seconds}


# ------------------------------------------------------------------------------------------------------------
# 6. Optional


def optional(results, is_stand_in):
    """Measure with TF32 for both, decoding and torch.compile, and run the tour on the device."""
    if is_stand_in:
        return
    _compare(results, ("small", "gpt384", "gpt768", LONG), is_stand_in, tf32=True)
    for beam in (1, 5):
        results.measure(f"decoding, beam {beam}", _decoding, beam)
    results.measure("tour", _tour)
    for name in ("small", "gpt384"):
        results.measure(f"{name}, torch.compile", _compiled, name)


def _decoding(beam):
    """Translate on both backends, and return the seconds and the share of equal translations."""
    import numpy as np

    from npformer.bench.decoding import LENGTHS, sentences, timed
    from npformer.generation import translate_ids
    from npformer.models.transformer import Transformer

    setup = _setup("base8k", False)
    model = Transformer(setup.config().replace(max_length=LENGTHS[1] + 2), rng=np.random.default_rng(0))
    sources = sentences(setup, 200, LENGTHS)
    seconds, translations = {}, {}
    for backend in ("numpy", "cupy"):
        model.to(backend)
        translate_ids(model, sources[:20], beam=beam, max_length=2)
        seconds[backend], translations[backend] = timed(
            lambda: translate_ids(model, sources, beam=beam, max_length=16)
        )
    pairs = zip(translations["numpy"], translations["cupy"], strict=True)
    return {"seconds": seconds, "equal": sum(here == there for here, there in pairs) / len(sources)}


def _tour():
    """Train the tour's translator on the device."""
    import tempfile

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "npformer", "tour", "--out", folder, "--backend", "cupy"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the tour ended with status {done.returncode}: {done.stderr[-400:]}")
    return {"seconds": time.monotonic() - began, "end": done.stdout[-1500:]}


def _compiled(name):
    """Return the seconds of a step of PyTorch with torch.compile."""
    from statistics import median

    from npformer.bench.measure import WARM_UP, time_steps
    from npformer.bench.torch_step import torch_step

    step = torch_step(_setup(name, False), threads=8, device="cuda", tf32=False, compiled=True)
    for _ in range(WARM_UP):
        step()
    return {"seconds": median(time_steps(step, 0.6)[0])}


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


def start(name, options):
    """Start a stage in a process of its own."""
    command = [sys.executable, __file__, str(options.out), "--here", name]
    return subprocess.Popen([*command, *["--stand-in"] * options.stand_in])


def finish(name, process, began, options):
    """Wait for a stage until its limit, print what it found, and return whether all is right."""
    limit = STAGES[name] * (4 if options.stand_in else 1)
    try:
        end = f"status {process.wait(max(0.0, began + limit - time.monotonic()))}"
    except subprocess.TimeoutExpired:
        process.kill()
        end = f"ended by its limit of {limit} s"
    path = file_of(name, options.out)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    problems = found.get("failures", ["it wrote nothing"])
    is_right = bool(found.get("complete")) and not problems
    seconds = found.get("seconds", time.monotonic() - began)
    print(f"{name}: {'right' if is_right else 'WRONG'}, {seconds:.0f} s, {end}", flush=True)
    for problem in problems[:20]:
        print(f"  {problem}", flush=True)
    return is_right


def file_of(name, folder):
    """Return the file of a stage."""
    return folder / f"{list(STAGES).index(name) + 1}-{name}.json"


def main():
    """Run the stages of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder of the results")
    parser.add_argument("--stand-in", action="store_true", help="use the stand-in for CuPy")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES), metavar="STAGE")
    # for the processes that this one starts: a stage, or the measurements of one kind
    parser.add_argument("--here", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--tf32", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.measure:
        measure_all(options.measure[0], options.measure[1:], options.tf32)
        return 0
    if options.here:
        run_stage(options.here, file_of(options.here, options.out), options.stand_in)
        return 0
    all_right = True
    for group in GROUPS:
        began = time.monotonic()
        started = [(name, start(name, options)) for name in group if name in options.only]
        for name, process in started:
            all_right &= finish(name, process, began, options) or name in OPTIONAL
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
