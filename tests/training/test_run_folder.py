"""The log of a run: its version, damaged lines, and lines that a crash cut short."""

import json
import shutil
from pathlib import Path

import pytest
from training_runs import losses
from training_worker import tiny_run

from npformer import UserError
from npformer.training import RunFolder, read_log
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


def test_the_log_begins_with_its_version(run):
    first, second, *_ = (run / "log.jsonl").read_text().splitlines()
    assert json.loads(first) == {"format": 1}
    assert json.loads(second)["step"] == 1
    assert "format" not in read_log(run)[0]


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


def test_the_copies_of_two_damaged_logs_are_both_kept(run):
    log = run / "log.jsonl"
    damaged = []
    for number in (1, 2):
        lines = log.read_bytes().split(b"\n")
        lines[2 * number] = b"?" * number
        log.write_bytes(b"\n".join(lines))
        damaged.append(log.read_bytes())
        resume(run)
    copies = [run / "log.damaged.jsonl", run / "log.damaged-2.jsonl"]
    assert [copy.read_bytes() for copy in copies] == damaged


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
