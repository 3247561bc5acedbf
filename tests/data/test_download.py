"""Downloads from a server that cuts connections, sends wrong answers, redirects and fails; and copies."""

import os
import re
import signal
import socket

import pytest
from corpus_server import known, serving
from hypothesis import given, settings
from hypothesis import strategies as st

from npformer import UserError
from npformer.data.download import fetch, part_of, take

DATA = bytes(range(256)) * 1200  # five times the chunk that a download reads at a time
NAME = "raw/words.en.gz"
FILE = known(NAME, DATA)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving({NAME: DATA, "raw/small": b"one\ntwo\n"}) as server:
        yield server


def get(server, folder, file=FILE, **settings):
    """Fetch the file, without pauses between attempts."""
    return fetch(file, server.url(), folder, **({"pause": 0, "timeout": 60} | settings))


def assert_whole(folder):
    assert (folder / NAME).read_bytes() == DATA
    assert [path.name for path in (folder / "raw").iterdir()] == ["words.en.gz"]


def test_an_unchanged_file_is_downloaded_only_once_and_a_changed_one_again(server, tmp_path):
    reported = []
    assert get(server, tmp_path, report=reported.append) is True
    assert_whole(tmp_path)
    assert reported == sorted(reported)
    assert reported[-1] == len(DATA)
    reported.clear()
    assert get(server, tmp_path, report=reported.append) is False
    assert len(server.requests) == 1
    assert reported == [len(DATA)]
    (tmp_path / NAME).write_bytes(DATA[:-1] + b"!")
    assert get(server, tmp_path) is True
    assert_whole(tmp_path)


@pytest.mark.parametrize("name", [NAME, f"{NAME}.part"])
def test_a_link_to_a_file_outside_the_folder_is_refused(server, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text("old")
    (tmp_path / "raw").mkdir()
    (tmp_path / name).symlink_to(outside)
    with pytest.raises(UserError, match="outside its folder"):
        get(server, tmp_path)
    assert outside.read_text() == "old"


ANSWERS = {  # what the server does, and the first bytes that are asked for
    "cut connections": ({"cuts": [1000, 70_000, 0, 5]}, [0, 1000, 71_000, 71_000, 71_005]),
    "a connection that is reset": ({"cuts": [200_000, 90_000], "reset": True}, None),
    "no ranges": ({"cuts": [1000, 70_000], "ranges": False}, None),
    "a wrong answer to a range": ({"cuts": [1000], "shift": 7}, [0, 1000, 0]),
    "a range without a total length": ({"cuts": [1000], "total": "*"}, [0, 1000]),
    "a busy server": ({"statuses": [503, 429, 500]}, [0] * 4),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_file_arrives_whole_from_a_server_that_gives(server, tmp_path, answer):
    behaviour, starts = ANSWERS[answer]
    vars(server).update(behaviour)
    get(server, tmp_path)
    assert_whole(tmp_path)
    found = [start for _, start in server.requests]
    assert found == starts if starts else len(found) == 3


@settings(max_examples=100 if os.environ.get("NPFORMER_NIGHTLY") else 12)
@given(cuts=st.lists(st.integers(0, 400_000), max_size=3), ranges=st.booleans(), sends_length=st.booleans())
def test_a_connection_may_be_cut_at_any_byte(server, tmp_path_factory, cuts, ranges, sends_length):
    server.cuts, server.ranges, server.sends_length = [*cuts], ranges, sends_length
    folder = tmp_path_factory.mktemp("cut")
    get(server, folder)
    assert_whole(folder)
    server.cuts = []


@pytest.mark.parametrize("ranges", [True, False])
def test_a_server_that_always_cuts_at_the_same_place_is_given_up(server, tmp_path, ranges):
    server.ranges, server.cuts = ranges, [1000] + [0 if ranges else 1000] * 20
    told = r"connection was cut, after 1,000 of 307,200 bytes: .* continues the download"
    with pytest.raises(UserError, match=told):
        get(server, tmp_path)
    assert len(server.requests) == 5  # the first attempt received something, the next four nothing new
    server.cuts, server.ranges = [], True
    get(server, tmp_path)
    assert server.requests[-1] == (NAME, 1000)
    assert_whole(tmp_path)


def test_pauses_grow_while_nothing_is_received(server, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr("npformer.data.download.time.sleep", pauses.append)
    server.cuts = [0, 0, 10, 0]
    get(server, tmp_path, pause=1)
    assert pauses == [2, 4, 1, 2]


def test_ctrl_c_leaves_a_partial_file_that_is_resumed(server, tmp_path):
    def stop(there):
        if there > 100_000:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        get(server, tmp_path, report=stop)
    assert not (tmp_path / NAME).exists()
    size = part_of(tmp_path / NAME).stat().st_size
    assert 100_000 < size < len(DATA)
    get(server, tmp_path)
    assert server.requests[-1] == (NAME, size)
    assert_whole(tmp_path)


# --- files that exist before the download ---


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(DATA), DATA + b"more"])
def test_a_partial_file_of_something_else_is_deleted(server, tmp_path, left):
    part = part_of(tmp_path / NAME)
    part.parent.mkdir()
    part.write_bytes(left)
    get(server, tmp_path)
    assert_whole(tmp_path)


def test_a_complete_partial_file_needs_no_server(tmp_path):
    part = part_of(tmp_path / NAME)
    part.parent.mkdir()
    part.write_bytes(DATA)
    fetch(FILE, "http://127.0.0.1:9", tmp_path, pause=0)
    assert_whole(tmp_path)


# --- answers that are not the file ---


@pytest.mark.parametrize("sends_length", [True, False])
@pytest.mark.parametrize(
    "wrong", [DATA[:-1] + b"!", DATA + b"!", DATA[:-5], b"<html>Log in first</html>"], ids=len
)
def test_a_wrong_file_is_refused(server, tmp_path, wrong, sends_length):
    server.files[NAME], server.sends_length = wrong, sends_length
    with pytest.raises(UserError, match=r"words.en.gz(: | is not the expected file).*--base-url.*--from"):
        get(server, tmp_path)
    assert not (tmp_path / NAME).exists()
    assert not part_of(tmp_path / NAME).exists()
    server.files[NAME] = DATA
    get(server, tmp_path)
    assert_whole(tmp_path)


def test_an_endless_stream_is_stopped(server, tmp_path):
    server.files[NAME], server.sends_length, reported = DATA + b"x" * 30_000_000, False, []
    with pytest.raises(UserError, match="is not the expected file"):
        get(server, tmp_path, report=reported.append)
    assert len(DATA) < reported[-1] < len(DATA) + 100_000


def test_a_web_page_instead_of_the_rest_leaves_what_was_received(server, tmp_path):
    server.cuts = [1000] + [0] * 4
    with pytest.raises(UserError, match="connection was cut"):
        get(server, tmp_path)
    server.files[NAME], server.ranges = b"<html>Log in first</html>", False
    with pytest.raises(UserError, match=r"not the expected file: it has 25 bytes, not 307,200; name"):
        get(server, tmp_path)
    assert part_of(tmp_path / NAME).read_bytes() == DATA[:1000]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk(server, tmp_path):
    part = part_of(tmp_path / NAME)
    part.parent.mkdir()
    part.symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"gz.part cannot be written \(No space left on device\): free some"):
        get(server, tmp_path)


REMEDY = "name another address with --base-url, or a folder that has the files with --from"
REFUSALS = {  # the statuses that the server gives, the path of the request, and words of the message
    "missing": ([], "", rf"there is no http://127.0.0.1:\d+/corpus/raw/none \(HTTP 404\): {REMEDY}"),
    "gone": ([410], "", "there is no"),
    "forbidden": ([403], "", "refused .HTTP 403 Forbidden"),
    "a bad request": ([400], "", "refused"),
    "busy for too long": ([503] * 4, "", r"the server is busy \(HTTP 503\), after 0 of 4 bytes"),
    "redirects in a circle": ([], "round", r"is refused \(HTTP 302 Found\)"),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusals_of_a_server(server, tmp_path, kind):
    statuses, path, words = REFUSALS[kind]
    server.statuses = list(statuses)
    with pytest.raises(UserError, match=words) as refused:
        fetch(known("raw/none", b"none"), server.url(path) if path else server.url(), tmp_path, pause=0)
    assert "\n" not in str(refused.value)


def test_redirects_are_followed_even_in_the_middle(server, tmp_path):
    server.cuts = [1000]
    fetch(FILE, server.url("moved"), tmp_path, pause=0)
    assert [start for _, start in server.requests] == [0, 1000]
    assert_whole(tmp_path)


# --- no network, wrong address, no disk space ---


def test_no_server(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens on this port now
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/corpus"
        with pytest.raises(UserError, match=r"no answer \(.*refused.*\), after 0 of 307,200 bytes.*--from"):
            fetch(FILE, address, tmp_path, pause=0)


def test_a_server_that_is_silent(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/corpus"
        with pytest.raises(UserError, match=r"no answer \(.*timed out"):
            fetch(FILE, address, tmp_path, pause=0, timeout=0.05)


ADDRESSES = ["corpus", "file:///etc", "ftp://example.org", "https://a b", "http://", ""]
IMPOSSIBLE = ["http://a:b:c/", "http://[::1/", "http://host:port", "http://a..b"]


@pytest.mark.parametrize("url", [*ADDRESSES, *IMPOSSIBLE])
def test_invalid_addresses(tmp_path, monkeypatch, url):
    monkeypatch.setenv("no_proxy", "*")
    told = "is not an address" if url in IMPOSSIBLE else f"{url!r} is not an address: give one"
    with pytest.raises(UserError, match=re.escape(told)):
        fetch(FILE, url, tmp_path, pause=0, attempts=1)
    assert not any(tmp_path.iterdir()) or url in IMPOSSIBLE


# --- copies from a folder ---


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(DATA)
    return tmp_path / "source"


def test_a_copy(source, tmp_path):
    reported = []
    assert take(FILE, source, tmp_path / "new", report=reported.append) is True
    assert_whole(tmp_path / "new")
    assert take(FILE, source, tmp_path / "new", report=reported.append) is False
    assert take(FILE, source, source) is False
    assert take(FILE, tmp_path / "nowhere", tmp_path / "new") is False  # a complete file needs no source
    assert reported == [len(DATA), len(DATA)]


@pytest.mark.parametrize("damaged", [b"", DATA[:-1], DATA[:-1] + b"!"], ids=len)
def test_a_damaged_file_is_not_copied(source, tmp_path, damaged):
    (source / NAME).write_bytes(damaged)
    with pytest.raises(UserError, match=re.escape(f"{source / NAME} is damaged")):
        take(FILE, source, tmp_path / "new")
    assert not (tmp_path / "new").exists()
