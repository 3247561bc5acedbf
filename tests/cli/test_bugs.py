"""npformer bugs as a learner uses it: start, wrong, hint, right; and repair files that misbehave."""

from pathlib import Path

import pytest
from commands import said
from processor_time import processor_time

from npformer.cli.main import main
from npformer.learn.bugs import BUGS
from npformer.learn.bugs.specimen import patched
from npformer.learn.tasks import Folder
from npformer.learn.tasks.process import check_here

EMBEDDING = BUGS.find("embedding")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Run `npformer bugs start` in a temporary folder and return the path of the file."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / Folder(Path("bugs")).start(EMBEDDING)


def repair(file, patch=EMBEDDING.repair):
    file.write_text(patched(file.read_text(encoding="utf-8"), patch), encoding="utf-8")


def state(capsys, name):
    """Return what the list says about a bug."""
    line = next(line for line in said(capsys, "bugs list").splitlines() if f" {name} " in line)
    return line.rstrip().split("  ")[-1].strip()


def judged(file):
    """Return the verdict on the file."""
    before = file.read_bytes()
    verdict = check_here(BUGS, EMBEDDING, str(file))
    assert file.read_bytes() == before
    assert "\n" not in verdict.message
    return verdict


def test_from_start_to_solved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert state(capsys, "embedding") == "not started"
    out = said(capsys, "bugs start 3")
    for words in ("Wrote bugs/03_embedding.py", "with the bug  █", "npformer bugs check"):
        assert words in out
    assert (tmp_path / "bugs/03_embedding.png").read_bytes().startswith(b"\x89PNG")
    file = tmp_path / "bugs/03_embedding.py"
    assert file.read_text(encoding="utf-8") == EMBEDDING.file_text()
    assert state(capsys, "embedding") == "started"

    file.write_text(EMBEDDING.file_text() + "\n# a comment is not a repair\n", encoding="utf-8")
    assert "the code is unchanged" in said(capsys, "bugs check", status=1)
    assert "Hint 1 of 3" in said(capsys, "bugs hint")
    assert "Hint 2 of 3" in said(capsys, "bugs hint 3")

    file.write_text(EMBEDDING.file_text().replace("+= dy", "+= 2 * dy"), encoding="utf-8")
    assert "this worked before your change and now fails" in said(capsys, "bugs check", status=1)
    file.write_text(EMBEDDING.file_text(), encoding="utf-8")
    repair(file)
    with processor_time() as used:
        out = said(capsys, "bugs check")
    assert used.seconds < 5
    assert "The bug of embedding is repaired" in out
    assert "finds the bug" in out
    assert "+        np.add.at(self.weight.grad, cache.ids, dy)" in out
    assert state(capsys, "embedding") == "solved"


def in_forward(text):
    """Return a patch that inserts a line at the beginning of forward."""
    return f'\n         """Return (y, cache)."""\n+        {text}\n'


RIGHT_BEFORE = "this worked before your change and now fails: "
MISBEHAVING = {
    "raises": (in_forward("raise KeyError('own words')"), "raised KeyError: 'own words'"),
    "exits": (in_forward("raise SystemExit(3)"), "ended the program (SystemExit 3)"),
    "returns nothing": (in_forward("return"), "forward returned NoneType: return the pair (y, cache)"),
    "returns one thing": (in_forward("return 3"), "forward returned int: return the pair (y, cache)"),
    "returns a text": (
        in_forward("return 'y', EmbeddingCache(ids)"),
        "forward returned a text as its output",
    ),
    "returns a list": (in_forward("return [1.0], None"), RIGHT_BEFORE),
    "returns another shape": (in_forward("return np.zeros(3), EmbeddingCache(ids)"), RIGHT_BEFORE),
    "returns objects": (in_forward("return np.full((1, 5, 4), None), EmbeddingCache(ids)"), RIGHT_BEFORE),
    "takes nothing": ("-    def forward(self, ids):\n+    def forward(self):\n", "forward takes 0 arrays"),
    "is missing": ("-class Embedding(Module):\n+class Embedding2(Module):\n", "there is no Embedding"),
    "is no class": ("-class Embedding(Module):\n+Embedding = 3\n+class Other(Module):\n", "there is no Emb"),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_repairs_that_misbehave(name, file):
    patch, words = MISBEHAVING[name]
    repair(file)
    repair(file, patch)
    verdict = judged(file)
    assert not verdict.solved
    assert words in verdict.message


@pytest.mark.parametrize(
    ("number", "shape", "status"),
    [("1", "1,8", 0), ("1", "7,8", 1), pytest.param("2", "4,8", 1, marks=pytest.mark.nightly)],
)
def test_the_commands_of_the_hints(number, shape, status, tmp_path, monkeypatch, capsys):
    """The commands in the hints can be typed as they are, and end with the status given here."""
    monkeypatch.chdir(tmp_path)
    specimen = BUGS.find(number)
    Folder(Path("bugs")).start(specimen)
    command = next(hint for hint in specimen.hints if "npformer gradcheck bugs/" in hint)
    thing = command.split("npformer gradcheck ")[1].split()[0]
    assert main(["gradcheck", thing, "--shape", shape]) == status
