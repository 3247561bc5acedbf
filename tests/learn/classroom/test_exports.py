"""The exported notebook, what its locked cells do in a notebook, and the autograder for Gradescope."""

import json
import os
import re
import shutil
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest
from classroom_solutions import HARMFUL, RIGHT, UNTOUCHED, solution

from npformer.cli.main import main
from npformer.errors import UserError
from npformer.learn.classroom import in_notebook
from npformer.learn.classroom.assess import is_untouched
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.gradescope import autograder_zip, export_gradescope
from npformer.learn.classroom.in_notebook import SETUP, NotSolved, check_exercise, start
from npformer.learn.classroom.nbgrader import export_nbgrader, notebook_text
from npformer.learn.exercises import EXERCISES

NAME = "softmax-backward"
ASSIGNMENT = Assignment((NAME, "warmup"), points=4, seed=123456789, seconds=2)

# ---------------------------------------------------------------------------------------------------------
# The notebook for nbgrader


def cells_of(text):
    return {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in json.loads(text)["cells"]}


def test_the_notebook_has_the_cells_of_nbgraders_format():
    import nbformat

    text = notebook_text(ASSIGNMENT, "week-1")
    nbformat.validate(nbformat.reads(text, as_version=4))
    cells = cells_of(text)
    each = [f"npformer-{kind}-{name}" for name in (NAME, "warmup") for kind in ("title", "solution", "tests")]
    assert list(cells) == ["npformer-introduction", "npformer-setup", *each]
    for name, cell in cells.items():
        settings = cell["metadata"]["nbgrader"]
        assert settings["grade"] == ("-tests-" in name)
        assert settings["solution"] == ("-solution-" in name) == (not settings["locked"])
    tests = cells["npformer-tests-warmup"]
    assert tests["metadata"]["nbgrader"] | {"points": 4} == tests["metadata"]["nbgrader"]
    hidden = re.search(r"### BEGIN HIDDEN TESTS\n(.*)\n### END HIDDEN TESTS", tests["source"])
    assert "seed=123456789" in hidden[1]
    assert text.count("123456789") == 2  # in the hidden tests alone


def test_the_cells_of_tests_are_known_as_the_exports_own_and_no_others():
    for name in (each.name for each in EXERCISES):
        text = notebook_text(Assignment((name,), seed=2**62, seconds=1e-5), "x")
        cells = cells_of(text)
        for cell in ("npformer-setup", f"npformer-tests-{name}"):
            assert in_notebook._OWN.fullmatch(cells[cell]["source"] + "\n")
        assert not in_notebook._OWN.fullmatch(cells[f"npformer-solution-{name}"]["source"] + "\n")
    for text in ("check_exercise('x'); exit()", 'check_exercise("x")\nexit()', "start(exit())", "%%bash"):
        assert not in_notebook._OWN.fullmatch(text + "\n")


def test_an_exported_assignment_is_not_overwritten(tmp_path):
    written = export_nbgrader(ASSIGNMENT, tmp_path, "week-1")
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "source/week-1/week-1.ipynb",
        "nbgrader_config.py",
    ]
    compile(written[1].read_text(), "nbgrader_config.py", "exec")
    with pytest.raises(UserError, match="already exists"):
        export_nbgrader(ASSIGNMENT, tmp_path, "week-1")
    written[1].write_text("mine")
    assert len(export_nbgrader(ASSIGNMENT, tmp_path, "week-2")) == 1
    assert written[1].read_text() == "mine"


class Shell:
    """IPython's shell as far as `start` needs it."""

    def __init__(self):
        self.input_transformers_cleanup = []

    def run(self, text):
        """Return the lines that would run."""
        lines = text.splitlines(keepends=True)
        for transform in self.input_transformers_cleanup:
            lines = transform(lines)
        return "".join(lines)


@pytest.fixture
def shell(monkeypatch):
    fake = types.ModuleType("IPython")
    fake.shell = Shell()
    fake.get_ipython = lambda: fake.shell
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(in_notebook, "_cells", in_notebook._Cells(isolated=False))
    return fake.shell


def test_students_cells_run_for_the_student_and_not_for_nbgrader(shell, monkeypatch):
    start()
    start()
    assert len(shell.input_transformers_cleanup) == 1
    assert shell.run(RIGHT) == RIGHT
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    start()
    assert shell.run(SETUP) == SETUP
    assert shell.run(f'check_exercise("{NAME}", seconds=2)') == f'check_exercise("{NAME}", seconds=2)'
    for text in (RIGHT, "%%bash\nls", "import os; os._exit(0)"):
        assert shell.run(text) == ""


def test_the_last_solution_that_ran_is_checked(shell, capsys):
    start()
    with pytest.raises(NotSolved, match="no cell that ran defines softmax_backward"):
        check_exercise(NAME)
    shell.run(RIGHT)
    shell.run(UNTOUCHED)
    with pytest.raises(NotSolved, match="nothing was written") as caught:
        check_exercise(NAME)
    assert caught.value._render_traceback_() == str(caught.value).splitlines()
    shell.run("%matplotlib inline\n" + RIGHT)
    check_exercise(NAME, seconds=2, seed=3)
    assert capsys.readouterr().out.startswith("softmax-backward is solved: ")


def test_start_needs_a_notebook(shell, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    with pytest.raises(UserError, match="open the notebook in Jupyter"):
        start()


# ---------------------------------------------------------------------------------------------------------
# Gradescope


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder that is /autograder on Gradescope."""
    root = tmp_path_factory.mktemp("autograder")
    os.chmod(root, 0o755)
    (root / "submission").mkdir()
    names = (NAME, "attention", "causal-mask", "warmup", "pad", "truncate", "greedy", "clip-gradient")
    target, *_ = export_gradescope(Assignment(names, seed=5, seconds=2), root / "export")
    with zipfile.ZipFile(target) as file:
        for entry in file.infolist():
            path = Path(file.extract(entry, root / "source"))
            path.chmod(entry.external_attr >> 16 & 0o777)
    return root


@pytest.mark.skipif(shutil.which("bash") is None, reason="run_autograder is a program for bash")
def test_the_autograder_on_every_kind_of_solution(root):
    submission, source = root / "submission", root / "source"
    assert os.access(source / "setup.sh", os.X_OK)
    overwrite = f"open({str(root / 'results' / 'results.json')!r}, 'w').write('x')\n"
    files = {
        NAME: HARMFUL["prints"],
        "attention": solution("attention").replace("/ np.sqrt", "* np.sqrt"),
        "causal-mask": EXERCISES.find("causal-mask").file_text(),
        "warmup": "while True:\n    pass\n",
        "pad": "import os\nos._exit(0)\n" + solution("pad"),
        "truncate": f"try:\n    {overwrite}except OSError:\n    pass\n" + solution("truncate"),
        "clip-gradient": "from npformer.training.optimizer import clip_global_norm\n",
    }
    for name, text in files.items():
        (submission / f"{name}.py").write_text(text)
    environment = os.environ | {
        "AUTOGRADER_ROOT": str(root),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    environment.pop("PYTHONPATH", None)
    subprocess.run([source / "run_autograder"], env=environment, check=True, timeout=300)
    report = json.loads((root / "results" / "results.json").read_text())
    tests = {test["name"]: test for test in report["tests"]}
    scores = {name: test["score"] for name, test in tests.items() if "score" in test}
    right = (NAME, "truncate", "clip-gradient")  # the last is the package's own function, as the remark says
    assert scores == dict.fromkeys([*files, "greedy"], 0) | dict.fromkeys(right, 10)
    assert report["score"] == sum(scores.values())
    assert {(tests[name]["max_score"], tests[name]["visibility"]) for name in scores} == {(10, "visible")}
    assert re.search("multiplies|sqrt", tests["attention"]["output"])
    assert "nothing was written" in tests["causal-mask"]["output"]
    assert "stopped after 2 seconds" in tests["warmup"]["output"]
    assert "ended the program" in tests["pad"]["output"]
    assert "there is no file greedy.py" in tests["greedy"]["output"]
    remark = tests["clip-gradient: a remark"]
    assert remark["visibility"] == "hidden"
    assert "npformer's own clip_global_norm" in remark["output"]


def test_the_zip_file_is_the_same_each_time_and_holds_no_seed_for_students(tmp_path):
    assert autograder_zip(ASSIGNMENT) == autograder_zip(ASSIGNMENT)
    target, students, solutions = export_gradescope(ASSIGNMENT, tmp_path)
    assert sorted(path.name for path in students.iterdir()) == ["softmax-backward.py", "warmup.py"]
    assert (students / f"{NAME}.py").read_text().partition('"""\n')[2] == UNTOUCHED.partition('"""\n')[2]
    assert (solutions / f"{NAME}.py").read_text() == RIGHT
    assert all(b"123456789" not in path.read_bytes() for path in students.iterdir())
    with pytest.raises(UserError, match="already exists"):
        export_gradescope(ASSIGNMENT, tmp_path)
    assert target.stat().st_size < 5_000_000


def test_the_commands_in_a_students_file_work_beside_it(tmp_path, monkeypatch, capsys):
    _, students, _ = export_gradescope(ASSIGNMENT, tmp_path)
    text = (students / f"{NAME}.py").read_text()
    assert is_untouched(EXERCISES.find(NAME), text)
    monkeypatch.chdir(students)
    told = []
    for command in re.findall(r"npformer (exercise (?:check|hint) .+)", text):
        main(command.split())
        told.append(capsys.readouterr().out)
    check, hint = told
    assert check.startswith(f"{NAME}: not correct yet.")
    assert hint.startswith("Hint 1 of ")
