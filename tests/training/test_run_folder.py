"""The log of a run: its version, damaged lines, and lines that a crash cut short."""

import os
import shutil
from pathlib import Path

import pytest
from training_runs import losses
from training_worker import tiny_run

from npformer import UserError
from npformer.cli.curves import draw_curves
from npformer.storage import atomic
from npformer.training import RunFolder, read_log, run_folder
from npformer.training.events import Noted


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("finished") / "run"
    tiny_run(run, steps=6)
    return run


@pytest.fixture
def run(finished, tmp_path):
    """Return a copy of a finished run."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def resume(run):
    """Resume a run that is finished, and return its notes."""
    events = []
    tiny_run(run, steps=6, resume=True, report=events.append)
    return [event.text for event in events if isinstance(event, Noted)]


def test_a_log_without_a_version_is_read(run, finished):
    log = run / "log.jsonl"
    log.write_bytes(log.read_bytes().split(b"\n", 1)[1])
    assert losses(run) == losses(finished)
    assert resume(run) == []
    assert losses(run) == losses(finished)


def test_a_log_of_a_newer_version_is_refused_and_stays(run):
    log = run / "log.jsonl"
    data = log.read_bytes().replace(b'{"format": 1}', b'{"format": 2}')
    log.write_bytes(data)
    for read in (read_log, resume):
        with pytest.raises(UserError, match=r"log\.jsonl has format 2, .* up to 1: install a newer npformer"):
            read(run)
    assert log.read_bytes() == data


DAMAGES = {
    "no JSON": b"x" * 40,
    "zeros": bytes(40),
    "no object": b"[1, 2]",
    "no step": b'{"seconds": 1.0}',
    "a text": b'{"step": 2, "seconds": 1.0, "loss": "low"}',
    "NaN": b'{"step": 2, "seconds": 1.0, "loss": NaN}',
    "a huge step": b'{"step": 1' + b"0" * 400 + b', "seconds": 1.0}',
    "an earlier step": b'{"step": 0, "seconds": 1.0}',
    "deep": b"[" * 100_000,
    "a second header": b'{"format": 1}',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_named_and_kept(run, finished, damage, capsys):
    log = run / "log.jsonl"
    lines = log.read_bytes().split(b"\n")
    lines[3] = DAMAGES[damage]
    log.write_bytes(b"\n".join(lines))
    before = log.read_bytes()
    message = r"line 4 of .*log\.jsonl is damaged: npformer train --resume .* copy"
    with pytest.raises(UserError, match=message):
        read_log(run)
    (note,) = resume(run)
    copy = run / "log.damaged.jsonl"
    assert note == f"line 4 of {log} cannot be read and was left out; the whole log before is kept in {copy}"
    assert copy.read_bytes() == before
    whole = losses(finished)
    assert losses(run) == [*whole[:2], *whole[3:]]  # line 1 is the version
    assert resume(run) == []  # once only
    assert copy.read_bytes() == before


def test_what_killed_runs_left_is_removed(run):
    """Of whatever file, but for one that a process writes to, and for a file of the user."""
    left = ["best.safetensors", "snapshot-00000002.safetensors", "log.damaged.jsonl", "curves.png"]
    names = [f".{name}.0123456789ab.partial" for name in left]
    for name in (*names, ".mine.partial"):
        (run / name).write_bytes(b"half")
    before = {*os.listdir(run)}
    with open(run / names[-1]) as written:
        atomic.fcntl.flock(written, atomic.fcntl.LOCK_EX)
        with RunFolder(run):
            assert before - {*os.listdir(run)} == {*names[:-1]}


def test_the_log_is_locked_again_after_its_repair(run):
    log = run / "log.jsonl"
    log.write_bytes(b"?\n" + log.read_bytes())
    with RunFolder(run) as folder:
        assert folder.cut(6).note
        with pytest.raises(UserError, match="another process is training"):
            RunFolder(run).__enter__()
        folder.write_log(step=7, seconds=1e6)
    assert read_log(run)[-1] == {"step": 7, "seconds": 1e6}


@pytest.mark.parametrize("rest", [b'{"step": 7, "sec', b'{"step": 7, "seconds": 9.0}', bytes(30)])
def test_a_last_line_that_a_crash_cut_short_is_left_out(run, finished, rest):
    log = run / "log.jsonl"
    log.write_bytes(log.read_bytes() + rest)
    assert losses(run) == losses(finished)
    assert resume(run) == []
    assert log.read_bytes() == (finished / "log.jsonl").read_bytes()
    assert not (run / "log.damaged.jsonl").exists()


@pytest.mark.parametrize(
    "name", ["log.jsonl", "last.safetensors", "best.safetensors", "averaged.safetensors", "curves.png"]
)
@pytest.mark.parametrize("left", [None, b"old"])
def test_links_that_lead_outside_are_refused(tmp_path, name, left):
    """A run's folder from a stranger may hold links under the names that training writes."""
    outside, run = tmp_path / "outside", tmp_path / "run"
    run.mkdir()
    if left is not None:
        outside.write_bytes(left)
    (run / name).symlink_to(outside)

    def train_and_draw():
        tiny_run(run, steps=4, average_last=2, average_every=1)
        draw_curves(run)

    with pytest.raises(UserError, match=f"{name} is a link|already holds a run") as error:
        train_and_draw()
    assert "\n" not in str(error.value)
    assert (outside.read_bytes() if outside.exists() else None) == left


def test_a_log_is_read_up_to_a_limit(run, monkeypatch):
    monkeypatch.setattr(run_folder, "MOST_LINES", 3)
    with pytest.raises(UserError, match="has more than 3 lines"):
        read_log(run)
    monkeypatch.setattr(run_folder, "MOST_BYTES", 1 << 20)
    with open(run / "log.jsonl", "ab") as log:
        log.truncate(2 << 20)
    for read in (read_log, resume):
        with pytest.raises(UserError, match=r"log\.jsonl has more than 1 MB"):
            read(run)
