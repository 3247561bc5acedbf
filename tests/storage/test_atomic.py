"""Atomic writes: errors, signals, links, permissions, long names and devices."""

import errno
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from npformer import UserError
from npformer.storage import atomic
from npformer.storage.atomic import (
    create_atomically,
    is_temporary,
    locked_folder,
    make_folder,
    refuse_link_outside,
    require_place,
    write_atomically,
    write_file,
)

ERRORS = (OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt(), MemoryError())
CALLS = ("access", "chmod", "fsync", "replace", "link")


class FailingOs:
    """A replacement for the module os in which the n-th call of one of CALLS raises an error."""

    def __init__(self, number, error):
        self.left, self.error = number, error
        self.path = SimpleNamespace(**vars(os.path) | {"realpath": self.counted(os.path.realpath)})

    def counted(self, function):
        def call(*arguments):
            self.left -= 1
            if self.left == -1:
                raise self.error
            return function(*arguments)

        return call

    def __getattr__(self, name):
        return self.counted(getattr(os, name)) if name in CALLS else getattr(os, name)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("write", [write_atomically, create_atomically])
def test_an_error_in_any_call_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, write, error):
    """An error may be ignored only after the rename, or in the permissions of a file that does not exist."""
    outcomes = []
    for number in range(12):
        path = tmp_path / str(number)
        if write is write_atomically:
            path.write_bytes(b"old")
        monkeypatch.setattr(atomic, "os", FailingOs(number, error))
        try:
            write(path, b"new" * 1000)
            outcomes.append("written")
        except type(error):
            outcomes.append("raised")
        monkeypatch.undo()
        content = path.read_bytes() if path.exists() else None
        old = b"old" if write is write_atomically else None
        assert content in (old, b"new" * 1000)
        assert not any(map(is_temporary, tmp_path.iterdir()))
    assert "raised" in outcomes
    assert outcomes[-1] == "written"


def test_the_disk_gets_all_bytes_before_the_new_name(tmp_path, monkeypatch):
    sizes, path = [], tmp_path / "file"
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append((os.fstat(file).st_size, path.exists())))
    write_atomically(path, b"new")
    assert sizes[0] == (3, False)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(("call", "number"), [("fsync", signal.SIGTERM), ("replace", signal.SIGINT)])
def test_a_signal_during_a_write_leaves_the_old_file_and_no_temporary_one(tmp_path, call, number):
    path = tmp_path / "file"
    path.write_text("old")
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom npformer.storage import atomic\n"
        f"signal.signal(signal.SIGINT, signal.default_int_handler)\nreal = os.{call}\n"
        f"def send(*arguments):\n    os.kill(os.getpid(), {int(number)})\n    real(*arguments)\n"
        f"os.{call} = send\natomic.write_atomically(Path(sys.argv[1]), b'new')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -number, done.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("locks", [True, False])
def test_writers_at_the_same_time_never_mix_their_data(tmp_path, monkeypatch, locks):
    def no_locks(*arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if not locks:  # as on some network file systems
        monkeypatch.setattr(atomic.fcntl, "flock", no_locks)
    path = tmp_path / "file"
    texts = [bytes([letter]) * 100_000 for letter in b"abcd"]
    read = []

    def write(text):
        for _ in range(25):
            write_atomically(path, text)
            read.append(path.read_bytes())

    with ThreadPoolExecutor(len(texts)) as pool:
        list(pool.map(write, texts))
    assert {len(text) for text in read} == {100_000}
    assert all(len(set(text)) == 1 for text in read)
    assert os.listdir(tmp_path) == ["file"]


KILLED = """
import os, signal, sys
from pathlib import Path
from npformer.storage import atomic
real = {call}
def kill(*arguments):
    {before}
    os.kill(os.getpid(), signal.SIGKILL)
{call} = kill
atomic.{write}(Path(sys.argv[1]), b"new" * 1000)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("write", "call", "before"),
    [
        ("write_atomically", "atomic.fcntl.flock", ""),  # an empty file is left, without a lock
        ("write_atomically", "os.fsync", ""),
        ("write_atomically", "os.replace", ""),
        ("create_atomically", "os.link", ""),
        ("create_atomically", "os.link", "real(*arguments)"),  # two names of one file are left
    ],
)
def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path, write, call, before):
    path = tmp_path / "file"
    if write == "write_atomically":
        path.write_text("old")
    code = KILLED.format(write=write, call=call, before=before)
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert len(os.listdir(tmp_path)) == 2 - (not path.exists())
    if before:
        os.link(path, tmp_path / "reader")  # as a reader that has the file open
    (tmp_path / ".file.other").write_text("")
    write_atomically(path, b"newer")
    assert path.read_bytes() == b"newer"
    if before:
        assert (tmp_path / "reader").read_bytes() == b"new" * 1000
        (tmp_path / "reader").unlink()
    assert sorted(os.listdir(tmp_path)) == [".file.other", "file"]


def test_one_process_at_a_time_is_in_a_locked_folder(tmp_path):
    count = tmp_path / "count"
    count.write_text("0")

    def increase(_):
        with locked_folder(tmp_path):
            count.write_text(f"{int(count.read_text()) + 1}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(increase, range(200)))
    assert count.read_text() == "200"
    with locked_folder(tmp_path / "missing"):
        pass


@pytest.mark.parametrize("where", ["../outside/file", "../outside/new", "../inside-too", "/proc/self/status"])
def test_a_link_to_a_file_outside_its_folder_is_refused(tmp_path, where):
    for folder in ("inside", "outside", "inside-too"):
        (tmp_path / folder).mkdir()
    outside = tmp_path / "outside" / "file"
    outside.write_text("old")
    link = tmp_path / "inside" / "file"
    link.symlink_to(where)
    for attempt in (lambda: write_file(link, b"new"), lambda: require_place(link)):
        with pytest.raises(UserError, match=r"outside its folder|it is a folder") as error:
            attempt()
        assert "\n" not in str(error.value)
    with pytest.raises(OSError, match="is a link to"):
        refuse_link_outside(link)
    assert outside.read_text() == "old"
    assert os.listdir(tmp_path / "outside") == ["file"]


@pytest.mark.parametrize("name", [".file.partial", ".file.0123456789ab.partial"])
def test_links_under_the_names_of_temporary_files_are_not_followed(tmp_path, name):
    (tmp_path / "inside").mkdir()
    outside = tmp_path / "outside"
    outside.write_text("old")
    (tmp_path / "inside" / name).symlink_to(outside)
    write_atomically(tmp_path / "inside" / "file", b"new")
    assert outside.read_text() == "old"
    assert sorted(os.listdir(tmp_path / "inside")) == [name, "file"]


@pytest.mark.skipif(sys.platform != "linux", reason="folders of the system, where even root can make no file")
@pytest.mark.parametrize("folder", ["/proc", "/sys", "/proc/self"])
def test_a_place_in_a_folder_of_the_system_is_refused_before_the_work(folder):
    with pytest.raises(UserError, match="cannot be written"):
        require_place(Path(folder, "x.html"))
    with pytest.raises(UserError, match="cannot be written"):
        make_folder(Path(folder))


@pytest.mark.parametrize("old", ["old", None])
def test_a_link_stays_a_link(tmp_path, old):
    """Its target is written, even if there was none."""
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    if old is not None:
        target.write_text(old)
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path / "folder") == ["target"]


@pytest.mark.skipif(os.name == "nt", reason="permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_write_protected_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *arguments: False)  # root may write everything
    for write in (lambda: write_file(path, b"new"), lambda: require_place(path)):
        with pytest.raises(UserError, match=r"file cannot be written \(Permission denied\): give another f"):
            write()
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127 + "x", "x" * 240])
def test_the_longest_names(tmp_path, name):
    path = tmp_path / name
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == [name]
    other = path.with_name(name[:-1] + "y")
    assert atomic._beginning(path) != atomic._beginning(other)


@pytest.mark.parametrize("name", ["x" * 256, "a\0b"], ids=["too long", "a null character"])
def test_names_that_no_file_can_have_are_refused(tmp_path, name):
    with pytest.raises(UserError, match="cannot be written"):
        write_file(tmp_path / name, b"new")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
def test_a_pipe_is_written_to_and_stays(tmp_path):
    """As does a device such as /dev/null, which no test should endanger."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(link, b"new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert link.is_symlink()
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_a_new_file_never_replaces_another(tmp_path):
    path = tmp_path / "file"
    create_atomically(path, b"first")
    with pytest.raises(FileExistsError):
        create_atomically(path, b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


def test_a_new_file_on_a_file_system_without_links(tmp_path, monkeypatch):
    def no_links(*arguments):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    create_atomically(tmp_path / "file", b"first")
    with pytest.raises(FileExistsError):
        create_atomically(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"


def test_handlers_of_signals_are_restored(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    write_atomically(tmp_path / "file", b"new")
    assert signal.getsignal(signal.SIGTERM) == before
