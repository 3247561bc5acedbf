"""Write an assignment for Gradescope: the zip file of the autograder, and the files for students.

Gradescope unpacks the zip file to /autograder/source, runs setup.sh once to build an image, and runs
run_autograder for each submission (see autograder.py). The zip file holds the Python files of npformer
itself.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from npformer.errors import UserError
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.autograder import SETTINGS
from npformer.learn.classroom.stub import solved_stub
from npformer.learn.exercises import EXERCISES
from npformer.storage.atomic import make_folder, write_file

SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, when it builds the image of the autograder.
set -euo pipefail
apt-get update
# npformer needs Python 3.11 or later, and python3 of Ubuntu 22.04 is 3.10
apt-get install -y python3.11 python3.11-venv || apt-get install -y python3 python3-venv
python=$(command -v python3.11 || command -v python3)
"$python" -m venv /autograder/venv
/autograder/venv/bin/python -m pip install "numpy>=2.0" "safetensors>=0.4.5" "threadpoolctl>=3.5"
"""

RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each submission, and reads results/results.json.
# AUTOGRADER_ROOT is another folder than /autograder, to try it elsewhere.
root=${AUTOGRADER_ROOT:-/autograder}
python=$root/venv/bin/python
[ -x "$python" ] || python=$(command -v python3)
cd "$root/source" || exit 1
PYTHONPATH=$root/source exec "$python" -m npformer.learn.classroom.autograder "$root"
"""

DATE = (2020, 1, 1, 0, 0, 0)  # of the files in the zip file, so that the same assignment gives the same bytes


def export_gradescope(assignment: Assignment, folder: Path) -> list[Path]:
    """Write autograder.zip, the stubs for students and the solutions for the teacher.

    Args:
        assignment: The assignment.
        folder: The folder.

    Returns:
        autograder.zip and the two folders.

    Raises:
        UserError: If one of them already exists, or if a file cannot be written.
    """
    target, students, solutions = (folder / name for name in ("autograder.zip", "students", "solutions"))
    for each in (target, students, solutions):
        if each.exists():
            raise UserError(f"{each} already exists: give another folder, or move it away to write it again")
    for each in (students, solutions):
        make_folder(each)
    for exercise in map(EXERCISES.find, assignment.exercises):
        stub = exercise.file_text(f"{exercise.name} --dir .")  # as students run it, beside the file
        write_file(students / f"{exercise.stem}.py", stub.encode())
        write_file(solutions / f"{exercise.stem}.py", solved_stub(exercise).encode())
    write_file(target, autograder_zip(assignment))
    return [target, students, solutions]


def autograder_zip(assignment: Assignment) -> bytes:
    """Return the content of the zip file of the autograder."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content, mode in _entries(assignment):
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = mode << 16  # the permissions
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, content)
    return data.getvalue()


def _entries(assignment: Assignment) -> Iterator[tuple[str, bytes, int]]:
    """Yield (name, content, permissions) for each file of the autograder."""
    yield "setup.sh", SETUP.encode(), 0o100755
    yield "run_autograder", RUN.encode(), 0o100755
    yield SETTINGS, (json.dumps(assignment.as_settings(), indent=1) + "\n").encode(), 0o100644
    package = Path(__file__).parents[2]
    for path in sorted(package.rglob("*.py")):
        yield f"npformer/{path.relative_to(package).as_posix()}", path.read_bytes(), 0o100644
