"""npformer build as a learner uses it: from an empty folder to a Transformer that translates."""

import json
import re

import pytest
from capstone_solutions import change, solution_text, solve

from npformer.cli.main import main
from npformer.learn.capstone.parts import MILESTONES, NAMES, PARTS, listed, progress
from npformer.learn.exercises import EXERCISES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to an empty folder and return the path of the learner's files in it, which do not exist."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "exercises"


def text_of(capsys):
    return " ".join(capsys.readouterr().out.split())


def test_every_part_is_in_one_milestone_and_has_exercises_of_the_course():
    assert sorted(name for names, _ in MILESTONES for name in names) == sorted(NAMES)
    assert len(PARTS) == 12
    for part in PARTS:
        assert [exercise.name for exercise in part.exercises] == list(part.names)
    names = [name for part in PARTS for name in part.names]
    assert len(set(names)) == len(names)
    chapters = [part.exercises[0].chapter for part in PARTS]
    assert chapters == sorted(chapters), "the parts are in the order of the course"


def test_every_part_that_needs_one_has_a_forward_and_a_backward_pass():
    without = {"positions", "masks", "Adam", "greedy search"}  # no gradient flows through them
    for part in PARTS:
        functions = [function for exercise in part.exercises for function in exercise.functions]
        backward = [function for function in functions if function.endswith("_backward")]
        assert bool(backward) == (part.name not in without), part.name
        assert len(backward) < len(functions), part.name


def test_an_empty_folder_shows_the_first_exercise(folder, capsys):
    assert main(["build"]) == 0
    printed = text_of(capsys)
    assert "0 of 12 parts are yours" in printed
    for part in PARTS:
        assert f"{part.name} the package's npformer exercise start {part.names[0]}" in printed
        assert f"npformer exercise start {part.names[0]}" in printed
    assert "To begin, run npformer exercise start embedding" in printed
    assert not folder.exists(), "nothing is written"


def test_parts_that_are_not_solved_are_named_as_the_packages(folder, capsys):
    solve(folder, "softmax", "attention", "masks")
    (folder / "layer-norm.py").write_text("x = 1\n")
    assert main(["build"]) == 0
    printed = text_of(capsys)
    assert "3 of 12 parts are yours" in printed
    assert "softmax yours attention yours masks yours" in printed
    assert "layer norm the package's npformer exercise check layer-norm" in printed
    assert "agree with the package's Transformer: with each of your parts" in printed
    assert "Your softmax, attention and masks are in; 3 of 12 parts are yours." in printed
    milestone = "✓ Every token attends to the tokens that it may attend to. (softmax, attention and masks)"
    assert f"What works so far by your parts: {milestone} The package's own" in printed
    assert "The Transformer learns" not in printed
    (own,) = re.findall(r"The package's own: (.*?)\. The linear", printed)
    assert own == listed([name for name in NAMES if name not in ("softmax", "attention", "masks")])


def test_a_part_of_which_one_exercise_is_solved_is_the_packages(folder, capsys):
    solve(folder, "softmax")
    (folder / "softmax-backward.py").unlink()
    assert main(["build"]) == 0
    printed = text_of(capsys)
    assert "0 of 12 parts" in printed
    assert "npformer exercise start softmax-backward (1 of 2 solved)" in printed


def test_a_wrong_part_is_named_with_what_the_grader_says(folder, capsys):
    learner, _ = solve(folder)
    change(learner, "layer-norm-backward", "dxhat - ", "")
    assert main(["build", "--train"]) == 1
    printed = text_of(capsys)
    assert "Wrong: your layer norm." in printed
    assert printed.count("Wrong:") == 1
    assert "With it, the Transformer is not the package's: " in printed
    assert "The exercise layer-norm-backward is not correct any more:" in printed
    assert "Until it is correct, the package's own layer norm takes its place." in printed
    others = "embedding, positions, softmax, attention, masks, heads, residual, feed-forward"
    assert (
        f"Your {others}, cross-entropy, Adam and greedy search are in; 11 of 12 parts are yours." in printed
    )
    assert "The Transformer learns." in printed
    assert "The layers of the encoder" not in printed
    assert "npformer exercise hint layer-norm-backward" in printed
    assert "step" not in printed, "it is not trained"
    assert not (folder / "transformer.safetensors").exists()
    assert main(["build"]) == 0, "now the package's part is in its place"
    printed = text_of(capsys)
    assert "11 of 12 parts are yours" in printed
    assert "layer norm the package's npformer exercise check layer-norm-backward (1 of 2 solved)" in printed


def test_a_few_steps_are_saved_and_not_made_again(folder, capsys):
    solve(folder, "softmax", "greedy search")
    assert main(["build", "--train", "--steps", "2"]) == 0
    printed = text_of(capsys)
    assert "step 2 loss" in printed
    assert "2 of 12 parts are yours. Wrote exercises/transformer.safetensors" in printed
    saved = (folder / "transformer.safetensors").read_bytes()
    assert main(["build", "--train", "--steps", "2"]) == 0
    assert "It is trained already." in text_of(capsys)
    assert (folder / "transformer.safetensors").read_bytes() == saved
    assert main(["build", "the dog zzzzz"]) == 0
    notes = capsys.readouterr().err
    assert "the model does not know zzzzz" in notes
    assert "the package's own parts: embedding, positions, attention" in notes
    for sentence, error in ((" ", "is empty"), ("a " * 50, "has 50 words")):
        assert main(["build", sentence]) == 2
        assert error in capsys.readouterr().err
    assert main(["build"]) == 0
    assert 'npformer build "the dog is tired"' in text_of(capsys)
    (folder / "greedy.py").write_text("def greedy(model, source, *, max_length):\n    raise SystemExit\n")
    assert main(["build", "the dog"]) == 1
    assert "Your Transformer was stopped: your code ended the program" in text_of(capsys)


@pytest.mark.slow
def test_from_an_empty_folder_to_a_transformer_that_translates(folder, capsys):
    """All files are graded, the Transformer is trained for some of the steps, and knows its sentences."""
    for part in PARTS:
        for exercise in part.exercises:
            assert main(["exercise", "start", exercise.name]) == 0
            (folder / f"{exercise.stem}.py").write_text(solution_text(exercise), encoding="utf-8")
    capsys.readouterr()
    assert main(["exercise", "check", "--all"]) == 0
    assert "All your parts are in; 12 of 12 parts are yours." in text_of(capsys)
    assert len(json.loads((folder / ".progress.json").read_text())["solved"]) == len(
        [name for part in PARTS for name in part.names]
    )
    capsys.readouterr()
    assert main(["build", "--train", "--steps", "600"]) == 0
    printed = text_of(capsys)
    assert "All parts are yours." in printed
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", printed)]
    assert len(losses) == 6
    assert losses[-1] < 0.5 < losses[0]
    right = int(re.search(r"Your Transformer translates: (\d+) of 100 sentences", printed)[1])
    assert right >= 50
    for english, french in (
        ("i am a student", "je suis étudiant"),
        ("she likes the doctor", "elle aime le médecin"),
    ):
        assert main(["build", english]) == 0
        assert capsys.readouterr().out.strip() == french


@pytest.mark.parametrize(
    ("finished", "count", "sentence"),
    [
        ([], 0, "0 of 12 parts are yours."),
        (["attention"], 7, "Your attention is in; 7 of 12 parts are yours."),
        (["masks", "Adam"], 2, "Your masks and Adam are in; 2 of 12 parts are yours."),
        (list(NAMES), 12, "All your parts are in; 12 of 12 parts are yours."),
    ],
)
def test_progress_is_a_sentence(finished, count, sentence):
    assert progress(finished, count) == sentence


def test_the_check_of_an_exercise_says_when_a_part_is_complete(folder, capsys):
    learner, _ = solve(folder, "softmax", "Adam")
    backward = EXERCISES.find("softmax-backward")
    learner.set_solved(backward, False)
    assert main(["exercise", "check", "softmax"]) == 0
    assert "of 12 parts" not in capsys.readouterr().out, "the other exercise of the part is not solved"
    assert main(["exercise", "check", "softmax-backward"]) == 0
    printed = text_of(capsys)
    assert (
        "Your softmax is in; 2 of 12 parts are yours. To see your Transformer, run npformer build" in printed
    )
    change(learner, "softmax-backward", "y * (dy - ", "(dy - ")
    assert main(["exercise", "check", "softmax-backward", "--dir", "exercises"]) == 1
    assert "of 12 parts" not in capsys.readouterr().out


def test_a_part_whose_exercises_the_grader_finds_correct_is_wrong_only_in_the_transformer(folder, capsys):
    """The file notices the Transformer's sizes, which the grader does not use."""
    learner, _ = solve(folder, "softmax")
    file = learner.file(EXERCISES.find("softmax"))
    trap = "def softmax(x):\n    return _right(x) * (1 + (x.ndim == 4 and x.shape[1] == 2))\n"
    text = file.read_text(encoding="utf-8")
    file.write_text(f"{text}\n_right = softmax\n{trap}", encoding="utf-8")
    assert main(["build"]) == 1
    printed = text_of(capsys)
    assert "Wrong: your softmax. With it, the Transformer is not the package's" in printed
    assert "The grader finds no mistake in its exercises" in printed
    assert "takes its place" not in printed
