"""Text from outside is printed as text, and standard streams may be closed, full, or read by `head`."""

import contextlib
import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from command_fuzz import NAME
from markdown_it import MarkdownIt
from toy_pretrained import toy_card, toy_checkpoint

import npformer
from npformer.cli.main import main
from npformer.cli.output import REPLACED, guard_streams, note, print_data, print_line
from npformer.cli.tasks import print_text
from npformer.cli.translate import translate_lines
from npformer.escaping import printable, shell_word
from npformer.learn.course.progress import LessonProgress, load_progress, save_progress
from npformer.pretrained import save_pretrained

FULL = Path("/dev/full")
posix = pytest.mark.skipif(os.name != "posix" or not FULL.exists(), reason="needs /dev/full")
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
QUICK = [f"--set={each}" for each in ("d_model=16", "d_ff=16", "n_heads=2", "n_layers=1", "validate_every=2")]
QUICK += ["--steps", "4"]


def assert_text(printed):
    """Check that a text has nothing that steers a terminal or cannot be encoded."""
    bad = {c for c in printed if unicodedata.category(c) in ("Cc", "Cs") or c in DIRECTIONS + "\u2028\u2029"}
    assert bad <= {"\n"}, printed


# Lines, data and notes


def test_lines_and_notes_are_one_line_of_text(capsys):
    print_line(NAME)
    note(NAME)
    printed = capsys.readouterr()
    assert printed.out == printable(NAME) + "\n"
    assert printed.err == f"npformer: {printable(NAME)}\n"
    assert_text(printed.out)


def test_a_terminal_breaks_a_long_line_at_spaces(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    for shown in ("a  number of 1,234,567 words", "a  number of\n  1,234,567 words"):
        print_line("a  number of 1,234,567 words", margin=2)
        assert capsys.readouterr().out == f"{shown}\n"
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_text("wrote a/" + "long/" * 30)
    assert capsys.readouterr().out.split() == ["wrote", "a/" + "long/" * 30]


def test_data_pass_through_a_pipe_and_are_text_on_a_terminal(capsys, monkeypatch):
    """A pipe gets the data as they are, but for lone surrogates, which no encoding has."""
    print_data("a \x1b[31m \u202e é " + os.fsdecode(b"\xe9"))
    assert capsys.readouterr().out == "a \x1b[31m \u202e é \\udce9\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_data("a \x1b[31m \u202e é " + os.fsdecode(b"\xe9"))
    assert capsys.readouterr().out == "a \\x1b[31m \\u202e é \\udce9\n"


@pytest.mark.parametrize(
    ("encoding", "text", "shown"),
    [
        ("ascii", "▁█ · π → … é 😀", r"18 . \u03c0 -> ... \xe9 \U0001f600"),
        ("latin-1", "▁ é → π", r"1 é -> \u03c0"),
        ("utf-8", "▁ é → π \udcff", r"▁ é → π \udcff"),
    ],
)
def test_characters_that_an_encoding_lacks(encoding, text, shown):
    assert text.encode(encoding, REPLACED).decode(encoding) == shown


# Standard streams that fail


def full_disk():
    """Return a stream that takes nothing."""
    return open(FULL, "w")


def closed_pipe():
    """Return a stream whose reader has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    return open(writing, "w")


STREAMS = {
    "full": (full_disk, 2, "standard output cannot be written (No space left on device)"),
    "closed": (lambda: None, 2, "standard output cannot be written (it is closed)"),
    "ended": (closed_pipe, 0, ""),
}


def guarded(work, stream, capsys, monkeypatch):
    """Run work with this standard output; return the status, standard error, and whether all was restored."""
    monkeypatch.setattr(sys, "stdout", stream)
    status = guard_streams(work)
    assert sys.stdout is stream
    if stream is not None:
        stream.close()  # fails if anything is left to be written
    return status, capsys.readouterr().err


@posix
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("size", [1, 100_000], ids=["less than a buffer", "more than a buffer"])
def test_a_failing_standard_output_ends_the_command(kind, size, capsys, monkeypatch):
    make, status, words = STREAMS[kind]
    begun = []

    def work():
        begun.append(True)
        for _ in range(3):
            print("x" * size)
        return 1

    found, error = guarded(work, make(), capsys, monkeypatch)
    assert (found, begun) == (status, [True])
    assert error.count("\n") == (1 if words else 0)
    assert words in error


@posix
@pytest.mark.parametrize("kind", STREAMS)
def test_it_ends_also_where_errors_are_handled(kind, capsys, monkeypatch):
    """Handlers of files' and users' errors do not keep the command going, and cleaning up is completed."""
    make, status, words = STREAMS[kind]
    after = []

    def work():
        try:
            print("x", flush=True)
        except (Exception, OSError):
            after.append("handled")
        finally:
            print("cleaning up", flush=True)
            after.append("cleaned up")
        after.append("went on")
        return 0

    found, error = guarded(work, make(), capsys, monkeypatch)
    assert (found, after) == (status, ["cleaned up"])
    assert words in error


@posix
def test_a_failing_standard_error_does_not_stop_the_command(capsys, monkeypatch):
    for stream in (None, full_disk()):
        monkeypatch.setattr(sys, "stderr", stream)
        status = guard_streams(lambda: note("lost " * 5000) or print("kept", flush=True) or 0)
        assert (status, capsys.readouterr().out) == (0, "kept\n")
    sys.stderr.close()


def test_a_user_without_a_home_folder(monkeypatch, tmp_path):
    """No folder named ~ is used: a lesson's progress is not saved, and matplotlib works elsewhere."""
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("MPLCONFIGDIR", "")
    monkeypatch.delenv("MPLCONFIGDIR")
    monkeypatch.chdir(tmp_path)
    guard_streams(lambda: 0)
    assert os.environ["MPLCONFIGDIR"] == os.devnull
    assert "there is no home folder" in save_progress("a", LessonProgress(1, 2)).note
    (tmp_path / "~/.local/state/npformer").mkdir(parents=True)
    (tmp_path / "~/.local/state/npformer/lessons.json").write_text(
        '{"lessons": {"a": {"step": 1, "steps": 2}}}'
    )
    assert load_progress() == {}


# commands that take a short time, one for every way in which commands print: help, tables, pages, lines, data
CHEAP = ["translate --help", "index 3.2.1", "exercise list 5", "gradcheck relu"]
CHEAP += ["pretrained --markdown", "inspect en-de --json"]


@posix
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("line", CHEAP)
def test_every_kind_of_command_ends_in_order(kind, line, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    make, status, words = STREAMS[kind]
    found, error = guarded(lambda: main(line.split()), make(), capsys, monkeypatch)
    assert found == status
    assert error.count("\n") == (1 if words else 0)
    assert words in error


# Whole processes: descriptors, encodings, and the end of Python. By default, one of each kind: what they
# show is tested above within this process

NIGHTLY = pytest.mark.nightly
NPFORMER = f"{shell_word(sys.executable)} -m npformer"
BARE = {"TERM", "COLUMNS", "LINES", "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "NO_COLOR"}
BARE |= {"PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "MPLCONFIGDIR"}


def shell(line, cwd, **environment):
    """Run a line of bash in which `npformer` is this package, and return the finished process."""
    kept = {name: value for name, value in os.environ.items() if name not in BARE}
    line = f'npformer() {{ {NPFORMER} "$@"; }}; {line}'
    variables = kept | {"PYTHONPATH": str(Path(npformer.__file__).parents[1])}
    return subprocess.run(
        ["bash", "-c", line], cwd=cwd, env=variables | environment, capture_output=True, check=False
    )


def write_log(run):
    """Write the log of a run, from which npformer curves draws a picture."""
    run.mkdir()
    entry = {"step": 1, "loss": 2.5, "seconds": 1.0, "tokens_per_second": 5.0, "lr": 0.1}
    (run / "log.jsonl").write_text(json.dumps(entry) + "\n")


PROCESSES = [
    ("npformer pretrained > /dev/full; exit $?", 2, "No space left on device"),
    ("npformer glossary | head -1; exit ${PIPESTATUS[0]}", 0, ""),
    ("npformer exercise list <&- >&- 2>&-; exit $?", 2, ""),
    pytest.param("npformer pretrained >&-; exit $?", 2, "it is closed", marks=NIGHTLY),
    pytest.param("npformer translate x --model nowhere 2>/dev/full; exit $?", 2, "", marks=NIGHTLY),
    pytest.param(
        "npformer translate --model nowhere <&-; exit $?", 2, "there is no model nowhere", marks=NIGHTLY
    ),
]


@posix
@pytest.mark.parametrize(("line", "status", "words"), PROCESSES)
def test_a_process_ends_in_order(line, status, words, tmp_path):
    done = shell(line, tmp_path)
    error = done.stderr.decode()
    assert done.returncode == status, error
    assert error.count("\n") == (1 if words else 0)  # no traceback, and no exception that Python ignored
    assert words in error


@posix
@pytest.mark.parametrize(
    ("encoding", "environment"),
    [
        pytest.param("latin-1", {"PYTHONIOENCODING": "latin-1"}, marks=NIGHTLY),
        ("ascii", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_a_terminal_without_unicode_gets_plain_signs(encoding, environment, tmp_path):
    done = shell("npformer bugs list; npformer translate é --model π", tmp_path, **environment)
    assert done.returncode == 2
    assert "embedding" in done.stdout.decode(encoding)
    error = done.stderr.decode(encoding)
    assert error.startswith("npformer: there is no model ")
    assert error.count("\n") == 1


SURROUNDINGS = {
    "no home folder": ("unset HOME", {}),
    "folders that cannot be used": ("true", {"HOME": os.devnull, "MPLCONFIGDIR": os.devnull}),
    "few descriptors": ("ulimit -n 16", {}),
}


@posix
@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=() if "no home" in place else NIGHTLY) for place in SURROUNDINGS]
)
def test_strange_surroundings(place, tmp_path):
    """Pictures are drawn, without remarks of matplotlib, and no folder named ~ is made."""
    before, environment = SURROUNDINGS[place]
    write_log(tmp_path / "run")
    done = shell(f"{before}; npformer curves run", tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode() == "npformer: drawn: run/curves.png\n"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@posix
def test_a_working_folder_that_was_deleted(tmp_path):
    (tmp_path / "gone").mkdir()
    done = shell("cd gone && rmdir ../gone && npformer exercise solution softmax-backward", tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert (
        done.stderr.decode()
        == "npformer: the working folder does not exist any more: change to another one\n"
    )


# Names and texts from outside, in every command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two small files, and with a run whose name and whose words are NAME."""
    path = tmp_path_factory.mktemp("output")
    odd = "[red] :smile: $x$ \x1b[31m \u202e <b> `*|"
    (path / "train.en").write_text(f"the cat sleeps\nthe dog eats\n{odd} eats\n" * 10, encoding="utf-8")
    (path / "train.fr").write_text(f"le chat dort\nle chien mange\n{odd} mange\n" * 10, encoding="utf-8")
    with contextlib.chdir(path):
        assert main(["train", "train.en", "train.fr", "--run", NAME, *QUICK]) == 0
    assert (path / NAME / "curves.png").exists()
    return path


@pytest.fixture
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def run(capfd, *arguments, statuses=(0,)):
    """Run a command; check its status and that all it prints is text. Return both outputs."""
    capfd.readouterr()
    status = main(list(arguments))
    printed = capfd.readouterr()
    assert status in statuses, printed
    assert "Traceback" not in printed.err
    assert_text(printed.out)
    assert_text(printed.err)
    if status == 2:
        assert all(line.startswith("npformer: ") for line in printed.err.splitlines())
    return printed.out, printed.err


# a command line, the file that it writes, and the command that it suggests
WRITING = [
    (["curves", NAME, "--out", f"{NAME}.svg"], f"{NAME}.svg", ""),
    (["lesson", "0.2", "--notebook", f"{NAME}.ipynb"], f"{NAME}.ipynb", ""),
    (
        ["exercise", "start", "softmax-backward", "--dir", NAME],
        f"{NAME}/softmax-backward.py",
        "npformer exercise check --dir ",
    ),
    (["train", "--resume", NAME], f"{NAME}/last.safetensors", "npformer translate --model "),
]


@posix
@pytest.mark.parametrize(("arguments", "file", "suggested"), WRITING, ids=[row[0][0] for row in WRITING])
def test_names_from_outside_are_text_and_the_right_files_are_written(
    inside, capfd, arguments, file, suggested
):
    before = {path.name for path in inside.iterdir()}
    shown = "".join(run(capfd, *arguments)).replace("\n", "").replace(" ", "")  # lines may break at spaces
    assert (inside / file).exists()
    assert {path.name for path in inside.iterdir()} - before <= {Path(file).parts[0]}
    assert printable(NAME).replace(" ", "") in shown
    if suggested:  # it can be typed as it is
        assert (suggested + shell_word(NAME)).replace(" ", "") in shown


def test_a_card_from_outside_is_text(tmp_path, capfd, monkeypatch):
    """Its fields may contain anything; the name of its file too."""
    monkeypatch.chdir(tmp_path)
    fields = {field: f"{NAME} {field}" for field in ("title", "data", "licence", "training", "command")}
    card = toy_card(**fields)
    save_pretrained(toy_checkpoint(), f"{NAME}.safetensors", card)
    out, _ = run(capfd, "pretrained", f"{NAME}.safetensors")
    for text in (f"{NAME}.safetensors", *fields.values()):
        assert "".join(printable(text).split()) in "".join(out.split())
    page, _ = run(capfd, "pretrained", f"{NAME}.safetensors", "--markdown")
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    heading, *cells = [token for token in tokens if token.type == "inline"]
    assert "".join(child.content for child in heading.children).endswith(printable(f"{NAME} title"))
    assert printable(f"{NAME} data") in ["".join(child.content for child in cell.children) for cell in cells]
    assert ["code_inline"] in [[child.type for child in cell.children] for cell in cells]
    [fence] = [token.content for token in tokens if token.type == "fence"]
    assert shell_word(NAME) in fence
    out, _ = run(capfd, "pretrained", f"{NAME}.safetensors", "--json")
    assert json.loads(out)[0]["title"] == f"{NAME} title"


def test_a_translation_has_no_line_break(capsys):
    """Line n of the output translates line n of the input, even if a word of the model has a line end."""

    class Odd:
        def translate_stream(self, lines, **settings):
            yield ["a\nb\u2028c", ""]

        def unknown_words(self, line):
            return []

    translate_lines(Odd(), ["one", ""], {})
    assert capsys.readouterr().out == "a b c\n\n"


LOUD = r"""
print("[red]loud[/x] :smile: \x1b[31m \u202e \x9b")
raise ValueError("[/x] \x1b[31m\r\nnpformer: forged")
"""


@posix
def test_what_a_learner_prints_and_raises_is_text(inside, capfd):
    run(capfd, "exercise", "start", "softmax", "--dir", "loud")
    with open("loud/softmax.py", "a", encoding="utf-8") as file:
        file.write(LOUD)
    out, _ = run(capfd, "exercise", "check", "softmax", "--dir", "loud", statuses=(1,))
    assert r"[red]loud[/x] :smile: \x1b[31m \u202e \x9b" in out
    assert r"ValueError: [/x] \x1b[31m" in out.replace("\n", " ")


def test_impossible_sizes_of_the_terminal_are_dropped(monkeypatch):
    for size in ("0", "-1", "²", "x", "9" * 12):
        monkeypatch.setenv("COLUMNS", size)
        guard_streams(lambda: 0)
        assert "COLUMNS" not in os.environ
    monkeypatch.setenv("COLUMNS", "20")
    guard_streams(lambda: 0)
    assert os.environ["COLUMNS"] == "20"


@posix
def test_no_file_becomes_a_standard_stream_that_was_closed(tmp_path):
    """A picture that is written while standard output is closed is not overwritten by what is printed."""
    write_log(tmp_path / "run")
    done = shell("npformer curves run >&- 2>&- <&-; exit $?", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
