"""Learners' files that forge the verdict, take what they can get, or leave processes behind."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from waiting import wait_until

from npformer.learn.bugs import BUGS
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks import process
from npformer.learn.tasks.process import check

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
SOFTMAX = EXERCISES.find("softmax-backward")
WRONG = "def softmax_backward(dy, y):\n    return y * dy\n"
RIGHT = "def softmax_backward(dy, y):\n    return y * (dy - (dy * y).sum(-1, keepdims=True))\n"


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return a function that checks a file with this text in a temporary folder."""
    monkeypatch.chdir(tmp_path)

    def judge(text, seconds=600, task=SOFTMAX):
        file = tmp_path / "softmax-backward.py"
        file.write_text(text, encoding="utf-8")
        verdict = check(BUGS if task in list(BUGS) else EXERCISES, task, file, seconds)
        assert "\n" not in verdict.message
        return verdict

    return judge


@POSIX
def test_a_solution_that_forks_answers_once(judged):
    assert judged(RIGHT + "import os\nos.fork()\n").solved


# ---------------------------------------------------------------------------------------------------------
# Forged verdicts

ON_EVERY_DESCRIPTOR = """
    import os
    from npformer.learn.tasks.answer import encode
    lines = [encode({"value": v}) for v in VALUES] + [encode({"complete": True, "printed": ""})]
    for descriptor in range(20):
        try:
            os.write(descriptor, b"\\n".join([b"", *lines, b""]))
        except OSError:
            pass
    os._exit(0)
"""
EMPTY = [{"calls": []}, {"values": {}}, {"calls": [{"returned": None, "gradients": {}}] * 20}]
FORGED = {
    "a verdict": ON_EVERY_DESCRIPTOR.replace("VALUES", "[{'solved': True, 'message': 'solved'}]"),
    "empty trials": ON_EVERY_DESCRIPTOR.replace("VALUES", repr(EMPTY)),
    "output and files": """
        import atexit, os, pathlib, sys, tempfile
        verdict = '{"solved": true, "message": "solved: 10 checks"}'
        folders = [pathlib.Path(tempfile.gettempdir()), pathlib.Path.cwd()]
        for path in [*map(pathlib.Path, sys.argv), *(p for f in folders for p in f.glob("*verdict*"))]:
            if path.suffix == ".json":
                path.write_text(verdict)
        pathlib.Path("verdict.json").write_text(verdict)
        print(verdict)
        print('{"dict": {"value": {"dict": {"solved": true}}}}')
        atexit.register(lambda: os._exit(0))
        atexit.register(lambda: os.write(1, verdict.encode()))
    """,
    "leaves out trials": """
        EXERCISES = __import__("npformer.learn.exercises").learn.exercises.EXERCISES
        object.__setattr__(EXERCISES.find("softmax-backward"), "trials", ())
    """,
    "patched modules": """
        import numpy as np
        import npformer.checking, npformer.checking.check
        import npformer.learn.exercises.grade as grade
        import npformer.learn.tasks.compare as compare
        from npformer.learn.exercises import EXERCISES
        from npformer.learn.tasks.verdict import Verdict
        solved = lambda *arguments, **settings: Verdict(True, "solved")
        grade.judge = grade.grade = EXERCISES.judge = solved
        grade.compare = compare.compare = lambda *arguments, **settings: None
        np.isclose = np.allclose = np.array_equal = lambda *arguments, **settings: True
        EXERCISES.observe = lambda *arguments: iter([{"solved": True, "message": "solved"}])
    """,
    "says that the file is unusable": """
        from npformer.learn.exercises import EXERCISES
        EXERCISES.observe = lambda *arguments: iter([{"unusable": "solved: 10 checks"}])
    """,
    "a right function is patched": """
        import npformer.functional
        npformer.functional.softmax_backward = lambda dy, y: y * dy
        npformer.functional.softmax = lambda x: (x, x)
    """,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_file_cannot_write_its_own_verdict(name, judged):
    text = WRONG + textwrap.dedent(FORGED[name])
    compile(text, name, "exec")  # so that it is refused for what it does
    assert not judged(text).solved


FORGED_REPAIRS = {
    "the trials": """
        from npformer.learn.bugs import BUGS
        for trial in BUGS.find("embedding").trials:
            object.__setattr__(trial, "judge", lambda *arguments: None)
            object.__setattr__(trial, "observe", lambda own: {})
    """,
    "the right results": """
        import npformer.learn.bugs.cases.embedding as case
        import npformer.learn.bugs.trials as trials
        from npformer.checking import CheckRow, Report
        rows = [CheckRow("", name, 0.0, "", 1e-11) for name in ("weight", *trials.PROPERTIES)]
        trials.gradcheck = lambda *arguments, **settings: Report("", rows)

        def by_loop(own):
            right = np.zeros((7, 4))
            return {"weight.grad": (right, right)}

        case.by_loop.__code__ = by_loop.__code__
    """,
}


@pytest.mark.parametrize("name", FORGED_REPAIRS)
def test_a_repair_cannot_write_its_own_verdict(name, judged):
    embedding = BUGS.find("embedding")
    verdict = judged(embedding.code() + textwrap.dedent(FORGED_REPAIRS[name]), task=embedding)
    assert not verdict.solved


# ---------------------------------------------------------------------------------------------------------
# Files that take what they can get

GREEDY = {
    "memory": ("import numpy as np\nx = np.empty(3 << 30, np.uint8)", "MemoryError"),
    "a file": ("with open('big', 'wb') as f:\n    f.seek(10**10)\n    f.write(b'x')", "File too large"),
    "files": ("files = [open(__file__) for _ in range(5000)]", "Too many open files"),
    "time in one call": ("sum(range(10**15))", "stopped after 0.5 seconds, in line 3: is there an infinite"),
    "time, asleep": ("import time\ntime.sleep(1e6)", "stopped after 2.5 seconds, in line 4: does it wait"),
    "time, and ignores the signal": (
        "import signal\nsignal.signal(signal.SIGPROF, signal.SIG_IGN)\nwhile True:\n    pass",
        "stopped: all its processes together ran for more than 0.5 seconds of processor time",
    ),
    "output past Python": (
        "import os\nwhile True:\n    os.write(1, b'x' * 10**6); os.write(2, b'x' * 10**6)",
        "stopped after 0.5 seconds",
    ),
    "standard input": (
        "import os, sys\nassert sys.stdin.read() == os.read(0, 1).decode() == ''\ninput()",
        "EOFError",
    ),
    "closes everything": ("import os\nos.closerange(0, 1000)", "ended the program with status 1"),
}


CLEARED = """
import faulthandler, os, signal, time
faulthandler.cancel_dump_traceback_later()
signal.setitimer(signal.ITIMER_PROF, 0)
"""
FORKED = """
for _ in range(3):
    if os.fork() == 0:
        time.sleep(0.2)
        while True: pass
"""
CUNNING = {
    "a loop without timers": (
        CLEARED + "while True: pass",
        "ran for more than 0.5 seconds of processor time",
    ),
    "children that loop": (
        CLEARED + FORKED + "time.sleep(1e6)",
        "ran for more than 0.5 seconds of processor time",
    ),
    "children that have ended": (
        CLEARED
        + "while True:\n    if os.fork() == 0:\n        sum(range(10**6)); os._exit(0)\n    os.wait()",
        "ran for more than 0.5 seconds of processor time",
    ),
    "orphans that loop": (
        CLEARED + "if os.fork() == 0:\n    os.fork(); os.setsid()\n    while True: pass\ntime.sleep(1e6)",
        "ran for more than 0.5 seconds of processor time",
    ),
    "threads that loop": (
        CLEARED
        + "import threading\nfor _ in range(3): threading.Thread(target=lambda: sum(range(10**12))).start()\n"
        "time.sleep(1e6)",
        "ran for more than 0.5 seconds of processor time",
    ),
    "asleep without timers": (CLEARED + "time.sleep(1e6)", "it took too long"),
    "shared memory": (
        "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1",
        "took more than 256 MB of memory",
    ),
    "memory of children": (
        "import mmap, os, time\nfor _ in range(6):\n    if os.fork() == 0:\n"
        "        x = mmap.mmap(-1, 100 << 20, mmap.MAP_PRIVATE)  # reserved, and not filled yet\n"
        "        time.sleep(1e6)\ntime.sleep(1e6)",
        "took more than 256 MB of memory",
    ),
    "little memory of many children": (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        x = b'x' * (25 << 20)\n"
        "        time.sleep(1e6)\ntime.sleep(1e6)",
        "took more than 256 MB of memory",
    ),
    "a file in memory": (
        "import os, mmap, time\nmaps = []\nfor _ in range(16):\n    f = os.memfd_create('x')\n"
        "    os.truncate(f, 60 << 20)\n    maps.append(mmap.mmap(f, 60 << 20))\n"
        "    for i in range(0, 60 << 20, 4096): maps[-1][i] = 1\ntime.sleep(1e6)",
        "took more than 256 MB of memory",
    ),
}


@LINUX
@pytest.mark.parametrize("name", CUNNING)
def test_limits_hold_for_code_that_evades_those_of_its_process(name, judged, monkeypatch):
    code, words = CUNNING[name]
    if words == "it took too long":
        monkeypatch.setattr(process, "PATIENCE", 0)
    run = process.ask_child
    monkeypatch.setattr(process, "ask_child", lambda *a, **s: run(*a, **s, memory=256 << 20))
    before = os.times()
    verdict = judged(WRONG + code + "\n", 0.5 if "processor" in words or "long" in words else 20)
    assert words in verdict.message
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert used < 6  # a second and the start of Python


@POSIX
@pytest.mark.parametrize("name", GREEDY)
def test_limits(name, judged, tmp_path, monkeypatch):
    code, words = GREEDY[name]
    if "2.5 seconds" in words:
        monkeypatch.setattr(process, "PATIENCE", 0)
    verdict = judged(WRONG + code + "\n", 0.5 if "stopped" in words else 600)
    assert not verdict.solved
    assert words in verdict.message
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 10**8


def test_recursion_without_a_limit_ends_the_check_only(judged):
    code = "import sys\nsys.setrecursionlimit(10**9)\nf = lambda: [f() for _ in 'x']\nf()\n"
    assert not judged(WRONG + code, 1).solved


def test_results_without_end_are_refused(judged):
    verdict = judged("import numpy as np\ndef softmax_backward(dy, y):\n    return np.zeros(10**8)\n")
    assert "too large" in verdict.message or "TooLarge" in verdict.message


# ---------------------------------------------------------------------------------------------------------
# Processes that are left behind

# each writes its number for the test, which is in no namespace, into the file "pids" and then sleeps
START = """
import os, subprocess, sys, time

def sleep():
    with open("pids", "a") as file:
        file.write(os.readlink("/proc/self") + "\\n")
    time.sleep(1e6)

def fork(function):
    if os.fork() == 0:
        function()
        os._exit(0)

def daemon():
    os.setsid()
    fork(sleep)  # its parent ends at once

def another_group():
    os.setpgid(0, 0)
    sleep()

SLEEP = "import os, time; open('pids', 'a').write(os.readlink('/proc/self') + '\\\\n'); time.sleep(1e6)"
for function in (sleep, daemon, another_group):
    fork(function)
subprocess.Popen([sys.executable, "-S", "-c", SLEEP], start_new_session=True, close_fds=False)
subprocess.Popen([sys.executable, "-S", "-c", SLEEP], start_new_session=True, env={})
while not os.path.exists("pids") or len(open("pids").readlines()) < 5:
    time.sleep(0.01)
"""


def alive(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def numbers(folder):
    return [int(line) for line in (folder / "pids").read_text().splitlines()]


@LINUX
@pytest.mark.parametrize("end", ["", "while True: pass", "os.kill(os.getpid(), 9)"])
def test_no_process_is_left(end, judged, tmp_path):
    assert judged(RIGHT + START + end + "\n", 1 if "while" in end else 600).solved == (end == "")
    assert len(numbers(tmp_path)) == 5
    assert alive(numbers(tmp_path)) == []


# a pipe of 100 bytes bounds this one, whoever reads them
BOMB = """
tokens, given = os.pipe()
os.write(given, b"x" * 100)
os.set_blocking(tokens, False)
try:
    while os.read(tokens, 1):
        if os.fork() == 0:
            os.setsid()
            with open("pids", "a") as file:
                file.write(os.readlink("/proc/self") + "\\n")
except BlockingIOError:
    pass
end = time.monotonic() + 10
while time.monotonic() < end:
    pass
"""


@LINUX
@pytest.mark.parametrize("code", ["for _ in range(100): fork(sleep)\ntime.sleep(1e6)\n", BOMB])
def test_many_processes_are_ended(code, judged, tmp_path):
    verdict = judged(RIGHT + START + code)
    assert verdict.message == "it was stopped: it started more than 32 processes"
    assert alive(numbers(tmp_path)) == []


@LINUX
def test_the_supervisor_of_root_runs_before_any_number_of_processes(judged, monkeypatch):
    if os.geteuid():
        pytest.skip("only root may run a process in real time")
    run = process.ask_child
    monkeypatch.setattr(process, "ask_child", lambda *a, **s: run(*a, **s, isolated=False))
    code = "raise ValueError([os.sched_getscheduler(p) for p in (os.getppid(), 0)])\n"
    assert f"[{os.SCHED_RR}, {os.SCHED_OTHER}]" in judged(RIGHT + "import os\n" + code).message


@LINUX
def test_a_file_cannot_end_the_supervisor_or_other_processes(judged, tmp_path, namespaces):
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as other:
        code = f"for n in (os.getppid(), {os.getpid()}, {other.pid}):\n    try: os.kill(n, 9)\n"
        assert judged(RIGHT + START + code + "    except OSError: pass\n").solved
        assert other.poll() is None
        other.communicate(b"\n")
    assert alive(numbers(tmp_path)) == []


@LINUX
def test_a_file_that_ends_the_supervisor_without_a_namespace(judged, tmp_path, monkeypatch):
    run = process.ask_child
    monkeypatch.setattr(process, "ask_child", lambda *a, **s: run(*a, **s, isolated=False))
    code = "import os, time\nopen('pids', 'w').write(str(os.getpid()))\nos.kill(os.getppid(), 9)\n"
    verdict = judged(RIGHT + code + "time.sleep(1e6)\n")
    assert verdict.message == "your code was killed by signal 9 before the check was over"
    wait_until(lambda: alive(numbers(tmp_path)) == [])


@LINUX
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_when_npformer_ends(how, tmp_path):
    (tmp_path / "softmax-backward.py").write_text(RIGHT + START + "while True: pass\n")
    arguments = ["exercise", "check", "softmax-backward.py", "--seconds", "600"]
    command = [sys.executable, "-m", "npformer", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as npformer:
        wait_until(lambda: (tmp_path / "pids").exists() and len(numbers(tmp_path)) == 5)
        npformer.send_signal(how)
        npformer.wait()
    wait_until(lambda: alive(numbers(tmp_path)) == [])
