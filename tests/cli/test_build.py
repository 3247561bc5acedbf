"""npformer build as a learner uses it: from an empty folder to a Transformer that translates."""

import json
import re

import pytest
from capstone_solutions import change, solve
from commands import refused, said
from mistake_tables import count_steps

from npformer.cli import build
from npformer.cli.main import main
from npformer.learn.capstone import compare, training
from npformer.learn.capstone.parts import MILESTONES, NAMES, PARTS, listed, progress
from npformer.learn.tasks.process import check_here


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to an empty folder and return the path of the learner's files in it, which do not exist."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "exercises"


def words_of(text):
    """Return a text without its line breaks."""
    return " ".join(text.split())


def test_every_part_is_in_one_milestone_and_has_exercises_of_the_course():
    assert sorted(name for names, _ in MILESTONES for name in names) == sorted(NAMES)
    assert len(PARTS) == 12
    for part in PARTS:
        assert [exercise.name for exercise in part.exercises] == list(part.names)
    names = [name for part in PARTS for name in part.names]
    assert len(set(names)) == len(names)
    chapters = [part.exercises[0].chapter for part in PARTS]
    assert chapters == sorted(chapters), "the parts are in the order of the course"


def test_parts_that_are_not_solved_are_named_as_the_packages(folder, capsys):
    """The part masks is not solved, since one of its exercises is missing."""
    solve(folder, "softmax", "attention", "masks")
    (folder / "layer-norm.py").write_text("x = 1\n")
    (folder / "softmax-backward.py").unlink()
    printed = words_of(said(capsys, "build"))
    assert "2 of 12 parts are yours" in printed
    assert "npformer exercise start softmax-backward (1 of 2 solved)" in printed
    assert "attention yours masks yours" in printed
    assert "layer norm the package's npformer exercise check layer-norm" in printed
    assert "agree with the package's Transformer: with each of your parts" in printed
    assert "Your attention and masks are in; 2 of 12 parts are yours." in printed
    assert progress(["masks"], 1) == "Your masks are in; 1 of 12 parts is yours."
    assert "The Transformer learns" not in printed
    (own,) = re.findall(r"The package's own: (.*?)\. The linear", printed)
    assert own == listed([name for name in NAMES if name not in ("attention", "masks")])


def test_a_wrong_part_is_named_with_what_the_grader_says(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        compare, "check", lambda tasks, task, file, seconds: check_here(tasks, task, str(file))
    )
    count_steps(monkeypatch, edits=100)
    learner, _ = solve(folder, "softmax", "attention", "masks", "layer norm")
    change(learner, "layer-norm-backward", "dxhat - ", "")
    printed = words_of(said(capsys, "build --train", status=1))
    for words in (
        "Wrong: your layer norm.",
        "With it, the Transformer is not the package's: ",
        "The exercise layer-norm-backward is not correct any more:",
        "Until it is correct, the package's own layer norm takes its place.",
        "Your softmax, attention and masks are in; 3 of 12 parts are yours.",
        "✓ Every token attends to the tokens that it may attend to. (softmax, attention and masks)",
        "npformer exercise hint layer-norm-backward",
    ):
        assert words in printed
    assert printed.count("Wrong:") == 1
    assert "The layers of the encoder" not in printed
    assert "Training in" not in printed, "it is not trained"
    assert not (folder / "transformer.safetensors").exists()
    monkeypatch.setattr(build, "compare_parts", lambda *arguments: [])
    printed = words_of(said(capsys, "build"))  # now the package's part is in its place
    assert "3 of 12 parts are yours" in printed
    assert "layer norm the package's npformer exercise check layer-norm-backward (1 of 2 solved)" in printed


def test_a_few_steps_are_saved_and_not_made_again(folder, capsys, monkeypatch, some_pairs):
    monkeypatch.setattr(build, "HELD_OUT", 3)
    monkeypatch.setattr(training, "builtin_dataset", lambda: some_pairs)
    monkeypatch.setattr(build, "compare_parts", lambda *arguments: [])
    solve(folder, "softmax", "greedy search")
    printed = words_of(said(capsys, "build --train --steps 2"))
    assert "step 2 loss" in printed
    assert "2 of 12 parts are yours. Wrote exercises/transformer.safetensors" in printed
    saved = (folder / "transformer.safetensors").read_bytes()
    assert "It is trained already." in words_of(said(capsys, "build --train --steps 2"))
    assert (folder / "transformer.safetensors").read_bytes() == saved
    assert main(["build", "the dog zzzzz"]) == 0
    notes = capsys.readouterr().err
    assert "the model does not know zzzzz" in notes
    assert "the package's own parts: embedding, positions, attention" in notes
    assert "is empty" in refused(capsys, "build ' '")
    assert "has 50 words" in refused(capsys, "build", "a " * 50)
    assert 'npformer build "the dog is tired"' in words_of(said(capsys, "build"))
    (folder / "greedy.py").write_text("def greedy(model, source, *, max_length):\n    raise SystemExit\n")
    printed = words_of(said(capsys, "build 'the dog'", status=1))
    assert "Your Transformer was stopped: your code ended the program" in printed


@pytest.mark.nightly
def test_from_an_empty_folder_to_a_transformer_that_translates(folder, capsys):
    """All files are graded, the Transformer is trained for some of the steps, and knows its sentences."""
    exercises = [exercise for part in PARTS for exercise in part.exercises]
    for exercise in exercises:
        said(capsys, f"exercise start {exercise.name}")
        (folder / f"{exercise.stem}.py").write_text(exercise.code, encoding="utf-8")
    assert "All your parts are in; 12 of 12 parts are yours." in words_of(
        said(capsys, "exercise check --all")
    )
    assert len(json.loads((folder / ".progress.json").read_text())["solved"]) == len(exercises)
    printed = words_of(said(capsys, "build --train --steps 600"))
    assert "All parts are yours." in printed
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", printed)]
    assert len(losses) == 6
    assert losses[-1] < 0.5 < losses[0]
    assert int(re.search(r"Your Transformer translates: (\d+) of 100 sentences", printed)[1]) >= 50
    assert said(capsys, "build 'i am a student'").strip() == "je suis étudiant"
    assert said(capsys, "build 'she likes the doctor'").strip() == "elle aime le médecin"
