"""npformer translate on files and pipes: lines are translated as they arrive, in order."""

import io
import json
import os
import select
import shlex
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from toy_pretrained import toy_checkpoint, toy_codec
from waiting import PATIENCE

import npformer
from npformer import UserError
from npformer.cli import line_input
from npformer.cli.line_input import BYTES, FIRST, MOST, read_blocks, size_in_bytes
from npformer.cli.main import main
from npformer.cli.translate import Columns, translate_lines
from npformer.generation import batch_decode
from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.pretrained import Translator
from npformer.storage.checkpoint import save_checkpoint

LINES = ["a man is riding a bicycle .", "", "two dogs", "a", "a man and a dog are in an inn .", "mmm"] * 40


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Return a folder with a run."""
    monkeypatch.chdir(tmp_path)
    Path("toy").mkdir()
    save_checkpoint(toy_checkpoint(), "toy/last.safetensors")
    return tmp_path


class Pieces(io.BufferedIOBase):
    """A pipe whose other end writes these pieces, and from which nothing may be read too early."""

    def __init__(self, *pieces):
        self.pieces = [*pieces, b""]

    def read1(self, size):
        assert size == BYTES
        return self.pieces.pop(0)


def text_of(lines):
    return "".join(f"{line}\n" for line in lines)


def joined(blocks):
    return list(chain.from_iterable(blocks))


# blocks of lines


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"\n", [""]),
        (b"a\r\nb", ["a", "b"]),
        ("é\u2028\x0b\n".encode(), ["é\u2028\x0b"]),  # a line ends at \n only
    ],
)
def test_lines_end_at_line_feeds(data, lines):
    assert joined(read_blocks(io.BytesIO(data))) == lines
    assert joined(read_blocks(Pieces(*(bytes([byte]) for byte in data)))) == lines


def test_a_block_takes_all_lines_that_have_arrived(monkeypatch):
    monkeypatch.setattr(line_input, "BYTES", 60)
    read, write = os.pipe()
    with open(read, "rb") as stream, open(write, "wb", buffering=0) as writer:
        assert size_in_bytes(stream) is None
        blocks = read_blocks(stream)
        writer.write(b"one\ntwo\n")
        assert next(blocks) == ["one", "two"]
        writer.write(b"x\n" * 90)  # three times what is read at once
        assert next(blocks) == ["x"] * 90
        writer.close()
        assert list(blocks) == []


def test_a_line_that_is_not_utf_8_ends_the_lines_before_it():
    blocks = read_blocks(io.BytesIO(b"one\ntwo\n\xff\nfour\n"))
    assert next(blocks) == ["one", "two"]
    with pytest.raises(UserError, match="standard input, line 3, is not valid UTF-8"):
        next(blocks)


# translations


def test_the_lines_before_one_that_is_too_long_are_translated():
    loaded = npformer.load("toy")
    stream, parts = loaded.translate_stream(["a", "man", "b " * 200, "c"], first_line=11, beam=1), []
    with pytest.raises(UserError, match=r"line 13 has \d+ tokens"):
        parts.extend(stream)
    assert joined(parts) == loaded.translate(["a", "man"], beam=1)


COMMAND = [sys.executable, "-m", "npformer", "translate", "--model", "toy", "--beam", "1"]


def test_a_closed_standard_input_is_refused():
    done = subprocess.run(f"exec {shlex.join(COMMAND)} <&-", shell=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"npformer: standard input is empty: give one sentence on each line")


def test_an_open_pipe_gets_answers():
    """The answer to a line arrives while the pipe is still open for the next one."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    # no buffer here, since select would not see a line that has already been read into it
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": buffered, "bufsize": 0}
    answers = []
    with subprocess.Popen(COMMAND, **pipes) as process:
        for line in ("a man", "", "two dogs"):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            if not ready:
                process.kill()
            answers.append(process.stdout.readline().decode().rstrip("\n"))
        process.stdin.close()
        assert process.stdout.read() == b""
    assert answers == npformer.load("toy").translate(["a man", "", "two dogs"], beam=1)


@pytest.mark.parametrize("out", ["> found.txt", ""])
def test_a_terminal_shows_a_bar_beside_the_lines(place, out):
    terminals = pytest.importorskip("pseudo_terminal")
    Path("lines.txt").write_text(text_of(LINES))
    command = ["bash", "-c", f"{shlex.join(COMMAND)} < lines.txt {out}"]
    terminal = terminals.Terminal(command, place, columns=100)
    shown = terminal.read(until="never")
    assert terminal.close() == 0, shown
    assert "translating" in shown
    assert f"{len(LINES)} lines" in shown
    expected = npformer.load("toy").translate(LINES, beam=1)
    if out:
        assert Path("found.txt").read_text(encoding="utf-8") == text_of(expected)
    else:
        lines = [line for line in shown.split("\n") if "translating" not in line]
        assert [line for line in lines if line] == [line for line in expected if line]


@pytest.fixture
def read_from(monkeypatch):
    """Return a function that lets a text stand on standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_main_translates_standard_input_with_line_numbers(capsys, read_from):
    """The second block continues to count: an unknown word in its first line has the number of that line."""
    read_from(text_of(["a"] * FIRST + ["日"]))
    assert main(["translate", "--model", "toy", "--beam", "1"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == FIRST + 1
    assert f"line {FIRST + 1}: the model does not know" in printed.err


def test_a_line_with_bytes_that_are_not_utf_8_is_translated_like_the_others(capsys):
    assert main(["translate", "caf\udce9", "a man", "--model", "toy"]) == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_lines_before_a_mistake_are_printed(capsys, read_from):
    read_from(text_of(["a man", "", "b " * 200, "c"]))
    assert main(["translate", "--model", "toy", "--beam", "1"]) == 2
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 2
    assert printed.err.startswith("npformer: line 3 has ")


# scores, alignments and several translations


def printed(capsys, *options):
    """Return the lines of standard output of npformer translate with the run and these options."""
    assert main(["translate", "--model", "toy", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_columns(place, capsys):
    loaded, texts = npformer.load("toy"), ["a man", "two dogs"]
    best = loaded.translate(texts, n_best=2)
    assert printed(capsys, *texts, "--scores") == [
        f"{first.text} ||| {first.score:.4f} ||| {' '.join(f'{each:.4f}' for each in first.log_probs)}"
        for first, _ in best
    ]
    pairs = [[" ".join(f"{s}-{t}" for t, s in enumerate(each.alignment)) for each in two] for two in best]
    assert printed(capsys, *texts, "--alignment") == [
        f"{first.text} ||| {shown}" for (first, _), (shown, _) in zip(best, pairs, strict=True)
    ]
    assert printed(capsys, *texts, "--n-best", "2", "--alignment") == [
        f"{number} ||| {each.text} ||| {each.score:.4f} ||| {shown}"
        for number, (two, both) in enumerate(zip(best, pairs, strict=True), 1)
        for each, shown in zip(two, both, strict=True)
    ]
    assert [line.split(" ||| ")[0] for line in printed(capsys, *texts, "--n-best", "1")] == ["1", "2"]
    assert printed(capsys, *texts, "--scores", "--beam", "1")


def test_json_has_one_object_for_each_line(place, capsys, monkeypatch):
    loaded = npformer.load("toy")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a man\n\ntwo dogs\n"), encoding="utf-8"))
    rows = [json.loads(line) for line in printed(capsys, "--json", "--n-best", "3")]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert [row["source"] for row in rows] == ["a man", "", "two dogs"]
    assert [row["source_tokens"] for row in rows] == [
        loaded.source_tokenizer.encode(row["source"]).pieces for row in rows
    ]
    for row, best in zip(rows, loaded.translate(["a man", "", "two dogs"], n_best=3), strict=True):
        found = [{**each, "source_tokens": row["source_tokens"]} for each in row["translations"]]
        assert found == [each._asdict() for each in best]
    (row,) = [json.loads(line) for line in printed(capsys, "--json", "a man")]
    assert len(row["translations"]) == 1


def test_a_model_without_attention_has_no_alignment(place, capsys):
    config = RecurrentConfig(
        attention="none",
        d_model=8,
        d_hidden=8,
        source_vocab=len(toy_codec("en").vocabulary),
        target_vocab=len(toy_codec("de").vocabulary),
    )
    model = RecurrentTranslator(config, rng=np.random.default_rng(0))
    loaded = Translator.of_codecs(model, toy_codec("en"), toy_codec("de"))
    (found,) = loaded.translate("a man", n_best=1)
    assert found.alignment is None
    with pytest.raises(
        UserError, match="no encoder-decoder attention, which aligns words: leave out --align"
    ):
        translate_lines(loaded, ["a man"], {"n_best": 1}, columns=Columns(alignment=True))
    translate_lines(loaded, ["a man"], {"n_best": 1}, columns=Columns(json=True))
    assert json.loads(capsys.readouterr().out)["translations"][0]["alignment"] is None


def test_only_one_block_is_read_ahead(monkeypatch):
    """An input without end is read only as far as the blocks that were asked for."""
    monkeypatch.setattr(line_input, "_has_arrived", lambda stream: True)
    taken = []

    class Endless(io.BufferedIOBase):
        def read1(self, size):
            taken.append(size)
            assert len(taken) * 100 <= sum(min(FIRST << n, MOST) for n in range(10)) + 100
            return b"a line\n" * 100

    blocks = read_blocks(Endless())
    for _ in range(10):
        yielded = len(next(blocks))
    assert yielded == MOST


def test_a_part_is_yielded_before_the_batches_after_it(monkeypatch):
    loaded, made, real = npformer.load("toy"), [], batch_decode.greedy

    def counted(model, source, **settings):
        made.append(len(source))
        return real(model, source, **settings)

    monkeypatch.setattr(batch_decode, "greedy", counted)
    lines = ["a man is riding " * n for n in (8, 7, 6, 5, 4, 3, 2, 1)]  # the longest is translated first
    stream = loaded.translate_stream(lines, beam=1, batch_tokens=1, threads=1)
    for number in range(1, len(lines) + 1):
        assert len(next(stream)) == 1
        assert len(made) == number
