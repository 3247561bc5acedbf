"""Random command lines, the files that they name, and what every command must do with any of them.

A command line is drawn from those of command_lines.py, which work: some of their words are replaced by odd
ones, numbers, names, sentences or files of a kind that has to be refused or shown as it is. `run_case` runs a
command line in a copy of the prepared folder and returns what is wrong: an exception or a warning, a status
other than 0, 1 (of commands that check) and 2, an error that is not one sentence, a character that steers the
terminal, a temporary file that stays, a prepared file that is lost or changes without being named, and an
option that is not read.

Work that takes long is replaced after the options have been read: the training is short, and what cannot be
short raises WouldBegin, after which only the text and the files are checked.
"""

import contextlib
import dataclasses
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import traceback
import warnings
from dataclasses import dataclass
from itertools import chain
from types import SimpleNamespace
from unittest import mock

import numpy as np
from capstone_solutions import solve
from command_lines import LINES
from paths import ROOT
from toy_pretrained import FIELDS, MEASURED, toy_card, toy_checkpoint

from npformer.checking.cases import all_cases
from npformer.cli import gradcheck, load_model, main, train
from npformer.cli.limits import count_parameters
from npformer.cli.options import Arguments
from npformer.data import multi30k
from npformer.data.dataset import files_dataset, task_dataset
from npformer.data.download import KnownFile
from npformer.data.monolingual import sentence_dataset
from npformer.data.text import text_dataset
from npformer.generation.sampling import sample_ids
from npformer.learn import figures
from npformer.learn.course.lesson import all_lessons
from npformer.learn.experiments.family import FamilyRow, Trial
from npformer.learn.tasks import Verdict
from npformer.models.bert import BertConfig
from npformer.models.gpt import GPTConfig
from npformer.models.recurrent import RecurrentConfig
from npformer.models.transformer import TransformerConfig
from npformer.pretrained import read_pretrained, save_pretrained, weights_fingerprint
from npformer.storage.checkpoint import save_checkpoint
from npformer.training import TrainingConfig
from npformer.training import train as train_model

# Values

NUMBERS = [
    "0", "-1", "1", "2", "3", "1" * 23, "nan", "inf", "1e999", "-1e999", "", " ", " 1", "1_0", "0x10",
    "١٢", "1.5", "1e-300", "5e-324", "-0", "+1", "1,2", "9223372036854775807", "9223372036854775808",
    "1e18", "²",
]  # fmt: skip
NAMES = [
    "unknown", "smal", "SMALL", "[a]", "[/a]", "[bold red]x", "$x$", "$\\frac{1}{", "a\x1b[31mb",
    "\x1b]0;t\x07", "a\u202eb", "\u2066x\u2069", "a\nb", "a\rb", "\u2028", "-x", "--", "-", "--all", "--=",
    "n" * 300, "\udce9", "caf\udce9.txt", "", " ", ".", "..", "/", "~", "*", "%s", "{}", "{0}", "\\",
    "a/b", "été", "cafe\u0301", "\x7f", "\x9b31m", "`a`", "|", "<b>", "&lt;", ":smile:", "$(ls)", "'", '"',
    "#", "%",
]  # fmt: skip
# one name with everything that rich, Markdown, HTML, mathtext, a shell or a terminal could take for its own;
# no slash, and bytes that are not UTF-8
NAME = (
    os.fsdecode(b"[red]:smile: $x$_^{\\ '`*|<b>&amp;\" \xe9\xff\x9b") + "\x1b[31m\u202e\u2028\r\nforged: [x]"
)
SENTENCES = [
    "the cat", "the cat sleeps", "A man is riding a bicycle.", "", " ", "\t", "🙂", "👩\u200d👩\u200d👧 runs",
    "the \x1b[31mcat", "the\x00cat".replace("\x00", "\x01"), "the cat\nsleeps", "a " * 60, "a" * 5000,
    "x " * 3000, "e\u0301\u0301\u0301", "\u0301", "שלום the cat", "\u202ecat the", "\u2066",
    "[/the] [cat]", "$cat$ $", "猫 睡觉", "<UNK> <S> </S> <PAD>", "the\u00a0cat", "\ufeffthe cat",
    "\udcff cat", "\\n", "{cat}", "^_{", "▁a ▁m",
]  # fmt: skip
FILES = [
    "missing", "missing/below", "folder", "empty", "binary", "latin.txt", "deep.json", "wide.json",
    "damaged", "damaged/last.safetensors", "damaged.safetensors", "runs", "runs/tiny",
    "runs/tiny/log.jsonl", "train.en", "train.en.gz", "raw.de", "short.fr", "card.json", "template.json",
    "s.json", "own.py", "bad.py", "toy.safetensors", "link", "loop", "/dev/null", "bad-log", "many.json",
    "train.en/below", "exercises", "new.png", "new.svg", "new.txt", "new folder", "new[/a].png",
    "new$x$.svg", "new\x1b[31m.png", "new\u202e.txt", "new\udce9.png", "new\n.txt",
]  # fmt: skip

STANDARD_INPUT = [
    *(b"", b"the cat\n", b"the cat\n\nthe dog", b"\xff\xfe\n", b"\x1b[31m\n"),
    *(b"\r\n\r\n", b"\x00\n", b"a " * 400),
]


@dataclass(frozen=True)
class CommandLine:
    """A command line, what stands on standard input, and whether standard output is a terminal."""

    argv: tuple[str, ...]
    stdin: bytes = b""
    terminal: bool = True


def random_line(command, rng):
    """Draw a command line: one that works, with some words replaced, left out or added.

    Args:
        command: The name of the command.
        rng: A random.Random. Hypothesis would vary one example many times, and the lines are to differ.
    """
    lines = [shlex.split(line) for line in LINES]
    own = [line[1:] for line in lines if line[0] == command]
    words, every_own, every = list(rng.choice(own)), list(chain(*own)), list(chain(*lines))
    pools = [NUMBERS, NUMBERS, NAMES, SENTENCES, FILES, every_own, every_own, every]
    for _ in range(rng.choice([0, 1, 2, 4])):
        place = rng.randrange(len(words) + 1)
        new = rng.choice([*pools, [_setting(rng)]])
        words[place : place + rng.choice([0, 1, 1, 1])] = [rng.choice(new)] if rng.random() < 0.8 else []
    if rng.randint(0, 14) == 0:
        words.append(
            rng.choice(["--modle", "-", "--", "-h", "--help", "--\x1b[31m", "--[/a]", "-1", "--seed=1"])
        )
    if rng.randint(0, 29) == 0:
        command = rng.choice(NAMES)
    return CommandLine((command, *words), rng.choice(STANDARD_INPUT), rng.random() < 0.5)


def _setting(rng):
    """Draw a value of --set."""
    names = [
        *TransformerConfig.__dataclass_fields__,
        *TrainingConfig.__dataclass_fields__,
        "cell",
        "attention",
    ]
    values = [*NUMBERS, *NAMES, "None", "True", "(1, 2)", "[1]", "{}", "(" * 90, "1j", "b'x'", "...", "x"]
    name = rng.choice(rng.choice([names, NAMES]))
    return name + rng.choice(["=", "=", "=", "", "=="]) + rng.choice(values)


# Files

OWN = "def double(x):\n    return 2 * x, None\n\ndef double_backward(dy, cache):\n    return 2 * dy\n"
WRONG = "\ndef wrong(x):\n    return 2 * x, None\n\ndef wrong_backward(dy, cache):\n    return 3 * dy\n"
ENGLISH = "the cat sleeps\nthe dog eats\na cat eats\n" * 4
FRENCH = "le chat dort\nle chien mange\nun chat mange\n" * 4
CORPUS_TEXT = gzip.compress(b"a\nb\n", mtime=0)
CORPUS = tuple(
    KnownFile(file.name, len(CORPUS_TEXT), hashlib.sha256(CORPUS_TEXT).hexdigest()) for file in multi30k.FILES
)
TEXTS = {
    "train.en": ENGLISH, "train.fr": FRENCH, "raw.de": "Ein Mann fährt.\n" * 12, "short.fr": "un\n",
    "empty": "", "deep.json": "[" * 5000 + "]" * 5000, "wide.json": json.dumps({"title": "9" * 3000}),
    "many.json": "9" * 5000, "card.json": json.dumps(FIELDS), "own.py": OWN + WRONG, "bad.py": "1 +\n",
    "template.json": json.dumps(FIELDS | {"data": "TO WRITE: the data"}), "folder/kept.txt": "kept\n",
    "bad-log/log.jsonl": '{"step": 1, "loss": "x", "seconds": 1}\n[]\n',
}  # fmt: skip


def prepare(folder):
    """Write the files that the command lines name, with a trained run of each kind, into a folder."""
    data = {name: text.encode() for name, text in TEXTS.items()}
    data |= {"train.en.gz": gzip.compress(ENGLISH.encode()), "binary": bytes(range(256)) * 4}
    data |= {"latin.txt": "café\n".encode("latin-1") * 12} | {
        f"copy/{file.name}": CORPUS_TEXT for file in CORPUS
    }
    data |= {"teaching.md": (ROOT / "docs/teaching.md").read_bytes()}
    for name, content in data.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("train.en")
    (folder / "loop").symlink_to("loop")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        solve(folder / "exercises", "masks")
        assert main.main(["exercise", "start", "softmax-backward"]) == 0
        assert main.main(["bugs", "start", "3", "--dir", "repairs"]) == 0

    pairs = files_dataset(str(folder / "train.en"), str(folder / "train.fr"), min_count=1, filtered=False)
    text, sentences = text_dataset(folder / "train.en"), sentence_dataset(folder / "train.en")
    sizes = {"source_vocab": len(pairs.source.vocabulary), "target_vocab": len(pairs.target.vocabulary)}
    small = {"d_model": 8, "n_layers": 1, "n_heads": 2}
    for name, dataset, config in (
        ("tiny", pairs, TransformerConfig(**small, d_ff=8, max_length=20, tied="none", **sizes)),
        ("rnn", pairs, RecurrentConfig(d_model=8, d_hidden=8, max_length=20, **sizes)),
        ("text", text, GPTConfig(**small, context=16, **text.sizes)),
        ("sentences", sentences, BertConfig(**small, max_length=16, **sentences.sizes)),
    ):
        settings = TrainingConfig(steps=2, batch_size=4, schedule="constant")
        train_model(folder / "runs" / name, dataset, config, settings, backend="numpy", threads=1)
    whole = (folder / "runs/tiny/last.safetensors").read_bytes()
    (folder / "damaged").mkdir()
    (folder / "damaged/last.safetensors").write_bytes(whole[: len(whole) // 2])
    (folder / "damaged.safetensors").write_bytes(whole[:-1] + b"\x01")
    (folder / "runs/toy").mkdir()
    save_checkpoint(toy_checkpoint(), folder / "runs/toy/last.safetensors")
    save_pretrained(toy_checkpoint(), folder / "toy.safetensors", toy_card())
    toy = read_pretrained(str(folder / "toy.safetensors"))
    score = MEASURED | {"weights": weights_fingerprint(toy.model.state_dict())}
    (folder / "s.json").write_text(json.dumps(score))


def contents(folder):
    """Return the bytes of every file below a folder, by its path, and the target of every link."""
    found = {}
    for base, _, names in os.walk(os.fsencode(folder)):
        for name in names:
            path = os.path.join(base, name)
            if os.path.islink(path):
                found[os.fsdecode(path)] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[os.fsdecode(path)] = file.read()
    return found


# What would take long


class WouldBegin(BaseException):
    """A command has accepted all its arguments, and the work that it begins would take long."""


def _limited_training(folder, dataset, model, training, **settings):
    """Train for two steps, unless the model or the number of workers is large."""
    if count_parameters(model) > 400_000 or model.max_length > 10_000 or (settings.get("workers") or 1) > 2:
        raise WouldBegin
    return train_model(folder, dataset, model, training.replace(steps=min(2, training.steps)), **settings)


def _limited_resume(folder, *, changes, _resume=train.resume_run, **settings):
    """Resume a run for at most three steps."""
    if changes.get("steps", 0) > 5 or (settings.get("workers") or 1) > 2:
        raise WouldBegin
    return _resume(folder, changes=changes, **settings)


def _limited_sampling(model, prompts, n_tokens, **settings):
    """Sample three tokens at most."""
    return sample_ids(model, prompts, min(3, n_tokens), **settings)


def _limited_search(arguments, _load=load_model.load_with_search):
    """Load a translator for a search with few beams."""
    loaded, settings = _load(arguments)
    if settings["beam"] > 8:
        raise WouldBegin
    return loaded, settings


def _limited_check(what, shapes, *settings, _check=gradcheck.check_own_layer):
    """Check a layer with small inputs."""
    if any(np.prod(shape, dtype=float) > 100 for shape in shapes or ()):
        raise WouldBegin
    return _check(what, shapes, *settings)


def _no_network(*arguments, **settings):
    raise ConnectionRefusedError(111, "Connection refused")


def _draw(entry):
    """Return a figure that stops before it trains a model, or draws one of those that take long."""

    def draw(*studio, **changes):
        if entry.id not in ("F07", "F23") or (entry.id == "F07" and studio[0].run is None):
            raise WouldBegin
        return entry.draw(*studio, **changes)

    return dataclasses.replace(entry, function=draw, inputs=None)


def _begin(*arguments, **settings):
    raise WouldBegin


def _verdict(*arguments):
    return Verdict(False, "not [/yet] \x1b[31m", ["a $clue$"], printed="[b]\u202e\n", difference=[[1.0]])


@contextlib.contextmanager
def quick(home):
    """Replace what takes long or needs a network, so that the path of every option stays the real one."""
    dataset = task_dataset("copy", n=20)
    for name, text in {"en": ENGLISH, "fr": FRENCH}.items():
        (home / name).write_text(text)
    row, trial = FamilyRow("a", 1, 1, 1.0, 1.0, (1.0,), (), ()), Trial("a", "rnn", 1.0, {}, 1.0)
    small_cases = [case for case in all_cases() if "softmax" in case.name][:3]
    some_figures = [_draw(entry) for entry in figures.all_entries()]
    lessons = all_lessons()  # which are parsed once for all commands
    member = dict.fromkeys(("name", "compares", "cost", "differentiable"), "x")
    member |= {"parameters": 1, "error": 0.0, "ok": True, "chapter": 1}

    def always(value):
        return lambda *arguments, **settings: value

    replaced = {
        "bench.decoding.MEASUREMENTS": {"a": _begin},
        "bench.costs.measure_costs": _begin,
        "bench.profile.profile": _begin,
        "cli.bench.compare": _begin,
        "cli.bench.require_torch": always(None),
        "cli.build.begin_training": always(None),
        "cli.build.compare_parts": always([]),
        "cli.build.train_rounds": _begin,
        "cli.classroom.grade_class": always(0),
        "cli.experiment.EXPERIMENTS": dict.fromkeys(("ablation", "scaling"), _begin),
        "cli.family.builtin_corpus": always(SimpleNamespace(new_words=[])),
        "cli.family.builtin_dataset": always(None),
        "cli.family.members": always([member]),
        "cli.gradcheck.all_cases": always(small_cases),
        "cli.gradcheck.check_own_layer": _limited_check,
        "cli.lessons.all_lessons": always(lessons),
        "cli.lesson.as_notebook": always(""),
        "cli.lesson.as_page": always(""),
        "cli.score.load_with_search": _limited_search,
        "cli.site.build_site": _begin,
        "cli.tasks.check": _verdict,
        "cli.tour.all_cases": always(small_cases),
        "cli.tour.draw_pictures": always([]),
        "cli.tour.show_evaluation": always(None),
        "cli.tour.show_translations": always(None),
        "cli.tour.train": _limited_training,
        "cli.tour.write_page": lambda folder: folder / "explorer.html",
        "cli.train.builtin_dataset": always(dataset),
        "cli.train.resume_run": _limited_resume,
        "cli.train.task_dataset": always(dataset),
        "cli.train.train_run": _limited_training,
        "cli.translate.load_with_search": _limited_search,
        "data.multi30k.FILES": CORPUS,
        **{
            f"learn.course.{file}.all_lessons": always(lessons)
            for file in ("lesson", "references", "progress")
        },
        "learn.course.stepper.Stepper.walk": always(0),
        "learn.course.trained.builtin_dataset": always(dataset),
        "learn.experiments.family.measure_system": always(row),
        "learn.experiments.family.plan": always([SimpleNamespace(name="a")]),
        "learn.experiments.family.try_settings": always(trial),
        "learn.figures.all_entries": always(some_figures),
        "learn.figures.find_entry": lambda id, _find=figures.find_entry: _draw(_find(id)),
        "pretrained.loaded.sample_ids": _limited_sampling,
        "training.presets.Preset.dataset": always(dataset),
    }
    environment = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "TERM": "dumb", "COLUMNS": "120"}
    with contextlib.ExitStack() as stack:
        for name, new in replaced.items():
            stack.enter_context(mock.patch(f"npformer.{name}", new))
        stack.enter_context(mock.patch("socket.socket.connect", _no_network))
        stack.enter_context(mock.patch("socket.getaddrinfo", _no_network))
        stack.enter_context(mock.patch("webbrowser.open_new_tab", always(True)))
        stack.enter_context(mock.patch("time.sleep"))
        stack.enter_context(mock.patch.dict(os.environ, environment))
        yield


# One case

# commands with status 1
CHECKING = ("masks", "gradcheck", "inspect", "exercise", "bugs", "build", "lesson", "family", "tour")
# options whose values name files and folders that the command may write to
WRITTEN = [
    "--out", "--notebook", "--html", "--write", "--json", "--curves", "--run", "--resume", "--card",
    "--folder", "--dir", "--figures", "--png", "--csv",
]  # fmt: skip
# with status 2, the last line of standard error is the sentence, and only these notes may stand before it
NOTES = re.compile(
    r"npformer: (no sentence was given|(line \d+: )?the model does not know|.* printed: |other programs use|"
    r"too many words for a grid|there is no matrix|.*progress)",
    re.DOTALL,
)
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ud800-\udfff]"
)


class Screen(io.FileIO):
    """A file that says that it is a terminal."""

    def isatty(self):
        return True


class RecordedArguments(Arguments):
    """The arguments of a command, and the names of those that were read.

    A read by a rule does not count: the rules have been checked before a command gets its arguments.
    """

    def __init__(self, arguments):
        super().__init__(**vars(arguments))
        object.__setattr__(self, "_read", set())

    def __getattribute__(self, name):
        if not name.startswith("_"):
            object.__getattribute__(self, "_read").add(name)
        return super().__getattribute__(name)

    @property
    def _ignored(self):
        return sorted(self.given - self._read)


@dataclass
class Outcome:
    """What a command line did.

    Attributes:
        status: The exit status, or None if long work would have begun.
        wrong: What was wrong with it.
        ignored: The options that were given and not read.
        stderr: What it printed on standard error.
    """

    status: int | None
    wrong: list[str]
    ignored: list[str]
    stderr: str


def run_case(line, prepared, place):
    """Run a command line in a copy of the prepared folder.

    Args:
        line: The command line.
        prepared: The folder with the files.
        place: An empty folder. It contains the copy, the folder of the user, and what was printed.
    """
    folder = place / "work"
    shutil.copytree(prepared, folder, symlinks=True)
    before = contents(folder)
    recorded = []

    def read(argv, _read=main.read_command_line):
        command, arguments = _read(argv)
        recorded.append(RecordedArguments(arguments))
        return command, recorded[0]

    status, wrong = None, []
    with (
        contextlib.chdir(folder),
        mock.patch.object(main, "read_command_line", read),
        _streams(line, place) as printed,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="matplotlib|pyparsing")
        try:
            status = main.main(list(line.argv))
        except WouldBegin:
            pass
        except SystemExit as ended:
            status = ended.code
            if status != 0 or not {"-h", "--help"} & set(line.argv):
                wrong.append(f"SystemExit {status}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            last = traceback.extract_tb(error.__traceback__)[-1]
            wrong.append(f"{type(error).__name__}: {error} at {last.filename}:{last.lineno}")
    stdout, stderr = (path.read_bytes().decode("utf-8", "surrogatepass") for path in printed)
    wrong += wrong_status(line, status) if not wrong else []
    wrong += wrong_text(line, status, stdout, stderr)
    wrong += wrong_files(line, folder, before)
    ignored = recorded[0]._ignored if recorded else []
    if ignored and status in (0, 1):
        wrong.append(f"ignored: {', '.join(ignored)}")
    return Outcome(status, wrong, ignored, stderr)


@contextlib.contextmanager
def _streams(line, place):
    """Replace the standard streams by files for a while. Yields their paths."""
    paths = [place / "stdout", place / "stderr"]
    raw = Screen(paths[0], "w") if line.terminal else io.FileIO(paths[0], "w")
    out = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
    err = io.TextIOWrapper(io.BufferedWriter(io.FileIO(paths[1], "w")), encoding="utf-8")
    with (
        out,
        err,
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.stdin), encoding="utf-8")),
    ):
        yield paths


def wrong_status(line, status):
    """Return what is wrong with the exit status."""
    allowed = {None, 0, 2} | ({1} if line.argv[0] in CHECKING else set())
    return [] if status in allowed else [f"status {status}"]


def wrong_text(line, status, stdout, stderr):
    """Return what is wrong with the text on standard output and standard error."""
    wrong = []
    data = not line.terminal and (
        line.argv[0] == "translate" or any(a.startswith(("--json", "--markdown")) for a in line.argv)
    )
    for name, text in (("stdout", "" if data else stdout), ("stderr", stderr)):
        if found := STEERING.search(text):
            wrong.append(f"{found[0]!r} on {name}: {text[max(0, found.start() - 60) : found.end() + 20]!r}")
    if "Traceback" in stdout + stderr or "Warning" in stderr:
        wrong.append(f"traceback or warning: {stderr[-300:]!r}")
    lines = stderr.splitlines()
    if status == 2:
        *notes, last = lines or [""]
        given = "".join(line.argv)
        if not re.fullmatch("npformer: .+", last) or len(last) > 3000 + 4 * len(given):
            wrong.append(f"no sentence: {stderr[-300:]!r}")
        if any(not NOTES.match(note) for note in notes):
            wrong.append(f"more than one line: {stderr[:600]!r}")
        if "\\n" in last and not {"\n", "\\"} & set(given):
            wrong.append(f"a line break in the sentence: {last!r}")
    elif any(not note.startswith("npformer: ") for note in lines if status is not None or note):
        wrong.append(f"not a note: {stderr[:300]!r}")
    return wrong


def wrong_files(line, folder, before):
    """Return what is wrong with the files after the command."""
    after = contents(folder)
    wrong = [f"left over: {path!r}" for path in after if ".partial" in os.path.basename(path)]
    for path, content in before.items():
        if path not in after:
            wrong.append(f"lost: {path!r}")
        elif after[path] != content and not _may_be_written(line, folder, path):
            wrong.append(f"changed: {path!r}")
    return wrong


def _may_be_written(line, folder, path):
    """Return whether an option names a file, or its folder, to be written, or it is the note of checks."""
    values = []
    for option, value in zip(line.argv, [*line.argv[1:], ""], strict=True):
        name, equals, joined = option.partition("=")
        if name in WRITTEN:
            values.append(joined if equals else value)
    places = [os.path.realpath(folder / value) for value in values]
    real = os.path.realpath(path)
    is_note = line.argv[0] in ("exercise", "bugs", "build") and real.endswith("/.progress.json")
    return is_note or real in places or os.path.dirname(real) in places
