"""The files of a learner who has solved the exercises of the capstone as their hints suggest."""

from npformer.learn.capstone.parts import PARTS
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks import Folder


def solve(folder, *names):
    """Write the solutions of parts and note that they are solved. Return the learner's folder and the parts.

    Args:
        folder: The path of the folder.
        names: The names of the parts. Without names, all parts are solved.
    """
    folder.mkdir(exist_ok=True)
    learner = Folder(folder)
    parts = [part for part in PARTS if not names or part.name in names]
    for part in parts:
        for exercise in part.exercises:
            learner.file(exercise).write_text(exercise.code, encoding="utf-8")
            learner.set_solved(exercise, True)
    return learner, parts


def change(learner, name, old, new):
    """Change the learner's file of an exercise that is noted as solved."""
    file = learner.file(EXERCISES.find(name))
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
