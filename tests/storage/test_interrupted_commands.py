"""Commands that write several files, ended between any two writes: each file is the old one or a new one.

The next run of the command works, and nothing else in the folder has changed. test_atomic.py has the kills in
the middle of a write, and training/test_kills.py those of a training.
"""

import gzip
import json
import os

import pytest
import toy_pretrained
from corpus_server import known
from training_worker import tiny_run

from npformer.cli.main import main
from npformer.data import multi30k
from npformer.learn.exercises import EXERCISES
from npformer.storage import atomic

COMMANDS = (
    "pretrained --export runs/toy --out toy.safetensors --card card.json",
    f"exercise start {next(iter(EXERCISES)).name}",
    "bugs start 1",
    "figures F06 F41 --svg --out pictures",
    "attention --model runs/toy --out attention 3",
    "masks 3 --model runs/toy --out masks",
    "curves runs/toy --out curves.svg",
    "score test.en test.de --model runs/toy --out out.txt",
    "data multi30k --languages en --folder copied --from copy",
)


class EndedError(BaseException):
    """The end of a command, which nothing catches."""


class EndingOs:
    """A replacement for the module os of npformer.storage.atomic whose n-th renaming ends the command."""

    def __init__(self, number):
        self.left = number

    def __getattr__(self, name):
        function = getattr(os, name)
        return function if name not in ("replace", "link") else lambda *paths: self.named(function, *paths)

    def named(self, function, *paths):
        self.left -= 1
        if self.left == -1:
            raise EndedError
        function(*paths)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with everything that the commands read, and a file of the user, and go there."""
    (tmp_path / "mine.txt").write_text("the only copy of my thesis")
    tiny_run(tmp_path / "runs/toy", steps=3)
    for name in ("test.en", "test.de"):
        (tmp_path / name).write_text("3 1 4\n7 2\n")
    (tmp_path / "card.json").write_text(json.dumps(toy_pretrained.FIELDS))
    corpus = {}
    for part in ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"):
        text = f"{part}\n".encode() * 2000
        corpus |= {f"raw/{part}.en.gz": gzip.compress(text, mtime=0), f"tok/{part}.lc.norm.tok.en": text}
    for name, data in corpus.items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(data)
    monkeypatch.setattr(multi30k, "FILES", tuple(known(*file) for file in corpus.items()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    """Return the bytes of every file by its path."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_goes_on_where_it_was_ended(line, folder, monkeypatch):
    before, states = contents(folder), []
    for number in range(30):
        monkeypatch.setattr(atomic, "os", EndingOs(number))
        try:
            assert main(line.split()) == 0
        except EndedError:
            states.append(contents(folder))
        else:
            break
    complete = contents(folder)
    assert states
    assert before.items() < complete.items()
    for state in states:  # each run finds what those before it wrote
        assert before.items() <= state.items() <= complete.items()
