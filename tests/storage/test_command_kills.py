"""Every command that writes files, killed at any moment: each file is the old one or a complete new one.

The next run of the command works, and nothing else in the folder has changed.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import toy_pretrained
from corpus_server import serving
from paths import TESTS
from training_worker import tiny_run

from npformer.learn.exercises import EXERCISES
from npformer.storage.checksummed import read_checksummed

WORKER = TESTS / "helpers" / "command_worker.py"
UNFINISHED = re.compile(r"\..*\.partial|.*\.part")  # the names of files that are being written

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills by signals")


@dataclass(frozen=True)
class Command:
    """A command that writes files.

    Args:
        line: The command line.
        writes: The files and folders that it writes, which may change.
        again: The command line that continues after a kill, if there is a file `unless`.
        unless: The file.
        old: Whether the files of an earlier run may be there.
    """

    line: str
    writes: tuple[str, ...]
    again: str = ""
    unless: str = ""
    old: bool = True

    def __str__(self):
        return self.line[:25]


SMALL = " ".join(f"--set {each}" for each in ("d_model=8", "d_ff=8", "n_heads=2", "checkpoint_every=2"))
EXERCISE = next(iter(EXERCISES))

COMMANDS = [
    Command(
        f"train --task copy --run runs/new --steps 6 --batch-size 8 {SMALL} --set average_last=2 "
        "--set average_every=2 --set validate_every=3",
        ("runs/new",),
        again="train --resume runs/new",
        unless="runs/new/last.safetensors",
        old=False,
    ),
    Command("train --resume runs/half", ("runs/half",), old=False),
    Command("pretrained --export runs/toy --out toy.safetensors --card card.json", ("toy.safetensors",)),
    Command("score test.en test.de --model runs/toy --out out.txt", ("out.txt",)),
    Command(f"exercise start {EXERCISE.name}", ("exercises",)),
    Command("bugs start 1", ("bugs",)),
    Command("lesson 0.2 --notebook a.ipynb", ("a.ipynb",), again="lessons", unless="a.ipynb", old=False),
    Command("lesson 0.2 --html first.html", ("first.html",)),
    Command("figures F06 F41 --svg --out pictures", ("pictures",)),
    Command("attention --model runs/toy --out attention 3", ("attention",)),
    Command("masks 3 --model runs/toy --out masks", ("masks",)),
    Command("curves runs/toy --out curves.svg", ("curves.svg",)),
    Command("family --measure --steps 1 --out family", ("family",)),
    Command("experiment ablation --out results.json", ("results.json",)),
    Command("data multi30k --languages en --folder corpus --base-url URL", ("corpus",)),
    Command("data multi30k --languages en --folder copied --from copy", ("copied",)),
    Command("bench --repeats 1 --seconds 0.001 --only tiny --json bench.json", ("bench.json",)),
    Command("lessons --write README.md", ("README.md",)),
    Command("index --write INDEX.md", ("INDEX.md",)),
    Command("glossary --write GLOSSARY.md", ("GLOSSARY.md",)),
    Command("tour --steps 1 --out tour", ("tour",)),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Return a folder with everything that the commands read, and a file of the user."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "mine.txt").write_text("the only copy of my thesis")
    tiny_run(folder / "runs/toy", steps=3)
    tiny_run(folder / "runs/half", steps=9, stop=lambda: True)
    (folder / "card.json").write_text(json.dumps(toy_pretrained.FIELDS))
    for name in ("test.en", "test.de"):
        (folder / name).write_text("3 1 4\n7 2\n")
    for language in ("en", "de", "fr"):
        for part in ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"):
            text = f"{part} {language}\n".encode() * 2000
            for name in (f"raw/{part}.{language}.gz", f"tok/{part}.lc.norm.tok.{language}"):
                file = folder / "copy" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(gzip.compress(text, mtime=0) if name.endswith("gz") else text)
    return folder


@pytest.fixture(scope="module")
def ask(template):
    """Return a function that sends a request to the worker and returns its answer."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "no_proxy": "*", "MPLBACKEND": "agg"}
    command = [sys.executable, str(WORKER), str(template / "copy")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert json.loads(process.stdout.readline()) == "ready"

        def send(**request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield send
        process.stdin.close()


@pytest.fixture
def server(template):
    files = {
        path.relative_to(template / "copy").as_posix(): path.read_bytes()
        for path in (template / "copy").rglob("*.*")
    }
    with serving(files) as server:
        server.ranges = True
        yield server


class Trials:
    """A folder in which a command is killed again and again."""

    def __init__(self, command, template, folder, ask, url):
        self.command, self.template, self.folder, self.ask = command, template, folder, ask
        self.url = url
        shutil.copytree(template, folder)
        done = self.run(command.line)
        assert done["status"] == 0, self.errors()
        self.seconds, self.calls = done["seconds"], done["calls"]
        self.complete = self.files()

    def run(self, line, **how):
        argv = line.replace("URL", self.url).split()
        return self.ask(argv=argv, cwd=str(self.folder), **how)

    def errors(self):
        return (self.folder.parent / "errors.txt").read_text()

    def files(self):
        """Return the bytes of every file by its path."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def reset(self):
        """Restore what the command writes to the state before its first run."""
        for name in self.command.writes:
            path, original = self.folder / name, self.template / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            if original.is_dir():
                shutil.copytree(original, path)
            elif original.exists():
                shutil.copyfile(original, path)

    def trial(self, *, fresh, **how):
        """Kill the command once, check the folder, and run it to its end. Return whether it was killed."""
        if fresh or not self.command.old:
            self.reset()
        before = self.files()
        done = self.run(self.command.line, **how)
        killed = done["killed"]
        if not killed:  # it is faster than before
            self.seconds = min(self.seconds, done["seconds"])
        self.check(before)
        goes_on = self.command.unless and (self.folder / self.command.unless).exists()
        done = self.run(self.command.again if goes_on else self.command.line)
        assert done["status"] == 0, (self.command.line, self.errors())
        after = self.files()
        assert after.keys() == self.complete.keys()
        for name, data in self.complete.items():
            if not name.endswith((".json", ".jsonl", "curves.png")):  # these hold times
                assert after[name] == data, name
            require_whole(self.folder / name)
        return killed

    def check(self, before):
        """Check the folder after a kill."""
        now = self.files()
        for name, data in now.items():
            if name not in self.complete and UNFINISHED.fullmatch(Path(name).name):
                assert self.is_written(name), name
            elif data != before.get(name):
                assert self.is_written(name), name
                require_whole(self.folder / name)
        for name in before.keys() - now.keys():  # only what the command makes anew
            assert self.command.line.startswith(("tour", "family")), name
            assert self.is_written(name)

    def is_written(self, name):
        """Return whether a file is one that the command writes, or lies in a folder that it writes."""
        return any(name == each or name.startswith((f"{each}/", f".{each}.")) for each in self.command.writes)


ENDS = {".png": b"IEND\xaeB`\x82", ".svg": b"</svg>", ".html": b"</html>"}


def require_whole(path):
    """Check that a file is complete, by its format."""
    data = path.read_bytes()
    if path.suffix in ENDS:
        assert data.rstrip().endswith(ENDS[path.suffix]), path
    elif path.suffix in (".json", ".ipynb"):
        json.loads(data)
    elif path.suffix == ".jsonl":  # a crash may cut its last line short
        assert all(json.loads(line) for line in data.split(b"\n")[:-1]), path
    elif path.suffix == ".gz":
        gzip.decompress(data)
    elif path.suffix == ".safetensors":
        read_checksummed(path, key="npformer translator" if path.name.startswith("toy") else "npformer")
    else:
        assert data, path


def kill(command, template, folder, ask, server, *, at_random, in_writes):
    """Kill a command at random moments, and before system calls of its writes."""
    trials = Trials(command, template, folder / "place", ask, server.url())
    rng = np.random.default_rng(2017)
    kills = 0
    while kills < at_random:
        kills += trials.trial(fresh=kills % 2 == 0, delay=rng.uniform(0, trials.seconds))
    calls = np.unique(np.linspace(0, trials.calls - 1, in_writes).round().astype(int)) if trials.calls else []
    in_a_write = 0
    for number, call in enumerate(calls):
        fresh = number % 2 == 0 or not command.old
        killed = trials.trial(fresh=fresh, die=int(call))
        assert killed or not fresh  # with old files there may be less to write
        in_a_write += killed
    print(f"{command.line}: killed {kills} times at random, {in_a_write} times in a write")


QUICK = ("train --resume", "pretrained", "lesson 0.2 --notebook", "exercise", "data multi30k")


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.line.startswith(QUICK)], ids=str)
def test_a_command_is_killed(command, template, tmp_path, ask, server):
    kill(command, template, tmp_path, ask, server, at_random=1, in_writes=2)


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_is_killed_again_and_again(command, template, tmp_path, ask, server):
    kill(command, template, tmp_path, ask, server, at_random=11, in_writes=4)
