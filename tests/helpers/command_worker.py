"""A program that runs commands of npformer in processes of its own, and kills them.

It imports everything once and forks for each command, so that a command takes no time to start. Each line of
its input is a JSON object with the arguments (argv) and the folder (cwd), and optionally the seconds after
which to kill the command (delay) or the number of the system call before which it dies (die), which
npformer.storage.atomic makes. Each line of its output is an object with the exit status, the seconds, and the
number of those system calls.
"""

import dataclasses
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from corpus_server import known

from npformer.bench import measure, setups
from npformer.cli import bench, family, tour
from npformer.cli.main import COMMANDS, load_command, main
from npformer.data import multi30k
from npformer.data.corpus import builtin_corpus
from npformer.data.dataset import builtin_dataset
from npformer.errors import Registry
from npformer.learn.experiments import ablation
from npformer.learn.experiments import family as experiment
from npformer.learn.experiments.measured_runs import Result
from npformer.storage import atomic

TOY = setups.Setup("tiny", 8, 12, 2, 1, 30, 4, 6, tied=False)
ERRORS = "errors.txt"  # the standard error of a command, beside its folder


class CountingOs:
    """A replacement for the module os of npformer.storage.atomic that counts calls and may kill the process.

    Args:
        die: The number of the call before which the process dies. Before it flushes a file, the process cuts
            the file in half, as a crash might.
    """

    def __init__(self, die):
        self.die, self.count = die, 0

    def __getattr__(self, name):
        function = getattr(os, name)
        return partial(self._call, function) if name in ("fsync", "chmod", "replace", "link") else function

    def _call(self, function, *arguments):
        if self.count == self.die:
            if function is os.fsync and os.path.isfile(f"/proc/self/fd/{arguments[0]}"):
                os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1
        function(*arguments)


def make_small(corpus):
    """Replace what takes long: the corpora, the setups of bench, the systems of family, most checks of tour.

    Args:
        corpus: The folder with the corpus to download.
    """
    files = {path.relative_to(corpus).as_posix(): path.read_bytes() for path in corpus.rglob("*.*")}
    multi30k.FILES = tuple(known(name, data) for name, data in files.items())
    toys = Registry("setup")
    toys.register("tiny", TOY)
    setups.SETUPS = toys
    bench.is_busy = lambda machine: False
    measure.run_child = lambda task: measure.measure(dataclasses.replace(task, kind="npformer"))
    if os.environ.get("NPFORMER_NIGHTLY"):  # by day, no command is killed that reads the built-in sentences
        corpus_of_both, dataset = builtin_corpus(), builtin_dataset()
        small_corpus = corpus_of_both._replace(test=corpus_of_both.test[:20])
        small_dataset = dataclasses.replace(dataset, train=dataset.train[:200], valid=dataset.valid[:10])
        for module in (family, tour):
            module.builtin_corpus = lambda: small_corpus
            module.builtin_dataset = lambda: small_dataset
    cases = tour.all_cases()[:3]
    tour.all_cases = lambda: cases
    experiment.SYSTEMS = {"additive": "rnn-additive"}
    experiment.TIMED_LENGTHS = (4,)
    ablation.train_stage = lambda stage, trial, dataset: Result(*trial, 1, 1.0, [], 0.0)


def run_command(request, results):
    """Run the command in this process, and write its exit status and its system calls to a pipe."""
    os.chdir(request["cwd"])
    counting = atomic.os = CountingOs(request.get("die"))
    out = os.open(os.devnull, os.O_RDWR)
    errors = os.open(f"../{ERRORS}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor, new in ((0, out), (1, out), (2, errors)):
        os.dup2(new, descriptor)
    try:
        status = main(request["argv"])
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(results, json.dumps([status, counting.count]).encode())


def answer(request):
    """Run a command in a new process, kill it if asked, and return the answer."""
    read, write = os.pipe()
    began = time.perf_counter()
    process = os.fork()
    if process == 0:
        try:
            run_command(request, write)
        finally:
            os._exit(0)
    os.close(write)
    if request.get("delay") is not None:
        time.sleep(request["delay"])
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    seconds = time.perf_counter() - began
    with open(read, "rb") as results:
        found = json.loads(results.read() or "[null, 0]")
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, "status": found[0], "calls": found[1], "seconds": seconds}


def serve():
    """Answer one request after the other."""
    make_small(Path(sys.argv[1]))
    for name in COMMANDS:
        load_command(name)
    import sacrebleu  # noqa: F401

    from npformer import learn, plots  # noqa: F401
    from npformer.learn import figures  # noqa: F401

    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
