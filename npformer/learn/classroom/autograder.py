"""Grade one submission on Gradescope: python -m npformer.learn.classroom.autograder ROOT

ROOT is /autograder there. It has source/ with the autograder, submission/ with the student's files, and
results/, where results.json is written.
"""

import json
import sys
from pathlib import Path
from typing import Any

from npformer.escaping import printable
from npformer.learn.classroom.assess import MISSING, SOLVED, UNREADABLE, Result, assess, without_solution
from npformer.learn.classroom.assignment import Assignment, assignment_from
from npformer.learn.classroom.submissions import Unreadable, solution_of, submission_in
from npformer.storage.atomic import make_folder, write_file
from npformer.storage.json_files import read_json

SETTINGS = "assignment.json"


def main(root: str) -> None:
    """Grade the submission below a folder and write results/results.json there.

    Args:
        root: The folder, which is /autograder on Gradescope.
    """
    settings = Path(root, "source", SETTINGS)
    content = read_json(settings, f"the assignment {settings}", "export the assignment again")
    assignment = assignment_from(content, f"the assignment {settings}")
    submission = submission_in(Path(root, "submission"))
    results = []
    for name in assignment.exercises:
        try:
            text = solution_of(submission, name)
        except Unreadable as error:
            results.append(without_solution(assignment, name, UNREADABLE, str(error)))
            continue
        if text is None:
            results.append(without_solution(assignment, name, MISSING, f"there is no file {name}.py"))
        else:
            results.append(assess(assignment, name, text))
    make_folder(Path(root, "results"))
    report = json.dumps(as_gradescope(assignment, results), indent=1)
    write_file(Path(root, "results", "results.json"), report.encode())


def as_gradescope(assignment: Assignment, results: list[Result]) -> dict[str, Any]:
    """Return the results as Gradescope reads them: the score, and a test for each exercise.

    Args:
        assignment: The assignment.
        results: The result of each exercise.
    """
    return {
        "score": sum(result.points for result in results),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [
            {
                "name": result.exercise,
                "score": result.points,
                "max_score": assignment.points,
                "status": "passed" if result.status == SOLVED else "failed",
                "output": printable(result.as_text(), keep="\n"),
                "output_format": "text",
                "visibility": "visible",
            }
            for result in results
        ]
        + [_for_the_teacher(result) for result in results if result.remark],
    }


def _for_the_teacher(result: Result) -> dict[str, Any]:
    """Return a test without points that only the teacher sees."""
    return {
        "name": f"{result.exercise}: a remark",
        "output": result.remark,
        "output_format": "text",
        "visibility": "hidden",
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
