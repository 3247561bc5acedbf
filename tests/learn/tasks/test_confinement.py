"""What a solution can reach while it is graded: its own folder, and nothing of others."""

import ctypes
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from classroom_solutions import RIGHT

from npformer.learn.classroom.assess import SOLVED, assess, hidden_seed
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks.process import check

NAME = "softmax-backward"
SEED = 1234567
ASSIGNMENT = Assignment((NAME,), seed=SEED, seconds=5)

REACH = """
import ctypes, os, pathlib, shutil, socket, subprocess, sys
def attempt(name, function):
    try:
        print(name, "REACHED", str(function())[:40])
    except Exception as error:
        print(name, "refused", type(error).__name__)
def link():
    os.symlink(PLACE + "/results/key.json", "link")
    return open("link", "w").write("forged")
def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return sender.sendto(b"secret", ("127.0.0.1", UDP))
def in_shell():
    return subprocess.run(["cat", PLACE + "/results/key.json"], check=True, capture_output=True).stdout
def by_thread():
    import threading
    found = []
    def read():
        try:
            found.append(open(PLACE + "/results/key.json").read())
        except OSError:
            pass
    thread = threading.Thread(target=read)
    thread.start(); thread.join()
    return found[0]
"""
# what a solution tries, with PLACE for the folder of the teacher
ATTEMPTS = {
    "read": "open(PLACE + '/results/key.json').read()",
    "write": "open(PLACE + '/results/key.json', 'w').write('forged')",
    "append": "open(PLACE + '/results/key.json', 'a').write('forged')",
    "truncate": "os.truncate(PLACE + '/results/key.json', 0)",
    "new": "open(PLACE + '/results/new.json', 'w').write('forged')",
    "delete": "os.unlink(PLACE + '/results/key.json')",
    "rename": "os.replace(__file__, PLACE + '/results/key.json')",
    "list": "os.listdir(PLACE)",
    "hard-link": "os.link(PLACE + '/results/key.json', 'hard')",
    "link": "link()",
    "copy": "shutil.copytree(PLACE, 'copy')",
    "command": "in_shell()",
    "thread": "by_thread()",
    "its-own-file": "open(__file__, 'w').write('forged')",
    "package": "open(sys.modules['npformer'].__file__, 'a').write(' ')",
    "home": "pathlib.Path.home().joinpath('.npformer-trial').write_text('x')",
    "arguments": "open('/proc/PID/cmdline').read()",
    "environment": "open('/proc/PID/environ').read()",
    "memory": "open('/proc/PID/mem', 'rb')",
    "signal": "os.kill(PID, 9)",
    "connect": "socket.create_connection(('127.0.0.1', TCP), 1)",
    "datagram": "datagram()",
}


@pytest.fixture
def teacher(tmp_path):
    """Return a teacher's folder with a secret in it, with open ports in place of the network."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "key.json").write_text("secret")
    return tmp_path


def reached(text, place, attempts, run):
    """Return what a solution prints about each attempt."""
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for server in (tcp, udp):
            server.bind(("127.0.0.1", 0))
        tcp.listen()
        with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as other:
            code = REACH + "".join(f"attempt({name!r}, lambda: {what})\n" for name, what in attempts.items())
            names = {"PLACE": repr(str(place)), "PID": str(other.pid)}
            names |= {"TCP": str(tcp.getsockname()[1]), "UDP": str(udp.getsockname()[1])}
            for name, value in names.items():
                code = code.replace(name, value)
            result = run(text + code)
            assert other.poll() is None
            other.communicate(b"\n")
    return result, dict(line.split(" ", 1) for line in result.printed.splitlines())


@pytest.mark.skipif(
    sys.platform != "linux" or ctypes.CDLL(None).syscall(444, None, 0, 1) < 6,
    reason="this system has no Landlock, or an old one",
)
def test_a_solution_reaches_nothing_of_others(teacher):
    result, found = reached(RIGHT, teacher, ATTEMPTS, lambda text: assess(ASSIGNMENT, NAME, text))
    assert found.keys() == ATTEMPTS.keys()
    assert [name for name, what in found.items() if not what.startswith("refused")] == []
    assert result.status == SOLVED
    assert sorted(os.listdir(teacher / "results")) == ["key.json"]
    assert (teacher / "results" / "key.json").read_text() == "secret"
    assert not Path.home().joinpath(".npformer-trial").exists()


def test_a_solution_can_do_what_solutions_need():
    code = (
        "import os, tempfile, math, json, subprocess, multiprocessing, numpy.linalg, fractions, sys\n"
        "open('own', 'w').write('text'); print(open('own').read(), open(__file__).read()[:6])\n"
        "os.mkdir('folder'); os.rename('own', 'folder/other'); print(os.listdir('folder'))\n"
        "print(numpy.linalg.norm([3, 4]), numpy.random.default_rng(), file=open(os.devnull, 'w'))\n"
        "print(subprocess.run([sys.executable, '-c', 'print(1 + 1)'], capture_output=True).stdout)\n"
    )
    result = assess(ASSIGNMENT, NAME, RIGHT + code)
    assert result.status == SOLVED, result
    assert result.printed.startswith("text import\n['other']\n")
    assert "b'2\\n'" in result.printed


def test_a_learner_has_no_network_and_no_other_processes(tmp_path, namespaces):
    def run(text):
        file = tmp_path / f"{NAME}.py"
        file.write_text(text)
        return check(EXERCISES, EXERCISES.find(NAME), file)

    names = ("signal", "connect", "datagram")
    verdict, found = reached(RIGHT, tmp_path, {name: ATTEMPTS[name] for name in names}, run)
    assert verdict.solved
    assert [name for name in names if not found[name].startswith("refused")] == []


def test_the_seed_is_neither_in_the_arguments_nor_of_use_to_another_text(monkeypatch):
    monkeypatch.setenv("TOKEN", str(SEED))
    text = RIGHT + (
        "import gc, os, sys\n"
        "print(sys.argv, dict(os.environ), open('/proc/self/cmdline').read() if os.name != 'nt' else '')\n"
        "numbers = {v for o in gc.get_objects() if type(o) is dict for v in o.values() if type(v) is int}\n"
        "frame = sys._getframe()\n"
        "while frame: numbers |= set(map(str, frame.f_locals.values())); frame = frame.f_back\n"
        f"print('known', [n for n in numbers if str(n) == str({SEED - 1} + 1)])\n"
    )
    result = assess(ASSIGNMENT, NAME, text)
    assert result.status == SOLVED, result
    assert str(SEED) not in result.printed
    assert "known []" in result.printed
    seeds = {hidden_seed(ASSIGNMENT, NAME, text), hidden_seed(ASSIGNMENT, NAME, RIGHT), SEED}
    seeds |= {hidden_seed(ASSIGNMENT, "softmax", RIGHT)}
    assert len(seeds) == 4
    assert hidden_seed(ASSIGNMENT, NAME, RIGHT) == hidden_seed(ASSIGNMENT, NAME, RIGHT)
    assert hidden_seed(Assignment((NAME,)), NAME, RIGHT) is None
