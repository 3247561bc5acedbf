"""Solutions as students submit them: right, wrong, untouched, and some that try to harm the grader."""

from npformer.learn.classroom.stub import solved_stub
from npformer.learn.exercises import EXERCISES

RIGHT = solved_stub(EXERCISES.find("softmax-backward"))
WRONG = RIGHT.replace("y * (dy", "y + (dy")
UNTOUCHED = EXERCISES.find("softmax-backward").file_text()
assert WRONG != RIGHT

HARMFUL = {
    "prints": "print('x' * 100_000, flush=True)\n" + RIGHT,
    "loops": "while True:\n    pass\n" + RIGHT,
    "exits": "import os\nos._exit(0)\n" + RIGHT,
    "writes": "open('results.json', 'w').write('{\"score\": 10}')\n" + RIGHT,
}


def solution(name):
    """Return the right solution of an exercise as text."""
    return solved_stub(EXERCISES.find(name))
