"""Reading text files, correct and faulty."""

import gzip
import re

import pytest

from npformer.data import files
from npformer.data.files import ParallelText, read_lines, read_parallel, read_text
from npformer.errors import UserError


@pytest.fixture
def write(tmp_path):
    """Return a function that writes bytes or text to a new file and returns its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


# --- lines ---


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\ntwo", ["one", "two"]),
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("one\n\n two \n\n", ["one", "", " two ", ""]),
        ("\n", [""]),
        ("\ufeffone\n\ufefftwo\n", ["one", "\ufefftwo"]),  # only the first is a byte-order mark
        ("a\u2028b\x0bc\x85d\x1ce\rf\n", ["a\u2028b\x0bc\x85d\x1ce\rf"]),
        ("été 我\n", ["été 我"]),
    ],
)
def test_read_lines(write, content, lines):
    assert read_lines(write("text", content)) == lines
    assert read_lines(write("text.gz", gzip.compress(content.encode()))) == lines


def test_gzip_is_also_recognized_by_its_content(write):
    assert read_lines(write("named-wrongly.en", gzip.compress(b"one\n"))) == ["one"]
    assert read_lines(str(write("NAME.EN.GZ", gzip.compress(b"one\n")))) == ["one"]


@pytest.mark.parametrize("zipped", [False, True])
def test_invalid_utf8_names_file_and_line(write, zipped):
    data = "one\ntwo é\n".encode() + "café\nfour\n".encode("latin-1")
    path = write("train.fr.gz", gzip.compress(data)) if zipped else write("train.fr", data)
    with pytest.raises(UserError, match=re.escape(f"{path} is not UTF-8 text at line 3 (byte 0xe9)")):
        read_lines(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UserError, match=re.escape(f"there is no file {tmp_path / 'train.en'}")):
        read_lines(tmp_path / "train.en")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path} is a folder")):
        read_lines(tmp_path)


@pytest.mark.parametrize("name", ["n" * 5000, "null\0character"])
def test_a_name_that_cannot_be_opened(tmp_path, name):
    with pytest.raises(UserError, match="cannot be read"):
        read_lines(tmp_path / name)


ZIPPED = gzip.compress(b"one\ntwo\n" * 100, mtime=0)


def broken(place):
    """Return the zipped text with one byte changed."""
    data = bytearray(ZIPPED)
    data[place] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        *(("train.en", empty, "empty") for empty in (b"", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0))),
        ("train.en.gz", b"", "empty"),
        ("train.en", "one\n".encode("utf-16"), "not UTF-8 text at line 1"),
        *(("train.en.gz", ZIPPED[:cut], "(incomplete|not a valid gzip file)") for cut in (1, 5, 12, -9, -1)),
        # a byte of the header, of the data, of the checksum
        *(("train.EN.GZ", broken(place), "not a valid gzip file") for place in (0, 10, -6)),
    ],
)
def test_files_without_readable_text_are_refused(write, name, content, fault):
    path = write(name, content)
    with pytest.raises(UserError, match=f"{re.escape(str(path))} is {fault}"):
        read_lines(path)


# --- parallel files ---


def test_pairs(write):
    source = write("train.en", " one\ntwo \r\n")
    target = write("train.fr.gz", gzip.compress(b"un\ndeux\n"))
    assert read_parallel(source, target) == ParallelText([("one", "un"), ("two", "deux")], dropped=0)


def test_pairs_with_an_empty_side_are_dropped_and_the_rest_stay_aligned(write):
    text = read_parallel(write("a.en", "1\n\n3\n4\n5"), write("a.de", "eins\nzwei\n \u00a0\t\nvier\nfünf\n"))
    assert text.pairs == [("1", "eins"), ("4", "vier"), ("5", "fünf")]
    assert text.dropped == 2


def test_limit_counts_pairs(write):
    files = write("a.en", "1\n\n3\n4\n"), write("a.de", "1\n2\n3\n\n")
    text = read_parallel(*files, limit=2)
    assert (text.pairs, text.dropped) == ([("1", "1"), ("3", "3")], 1)
    assert len(read_parallel(*files, limit=100).pairs) == 2


def test_different_numbers_of_lines(write):
    source, target = write("a.en", "1\n2\n3\n"), write("a.de", "1\n2\n")
    with pytest.raises(UserError, match=re.escape(f"{source} has 3 lines but {target} has 2")):
        read_parallel(source, target)


def test_no_pair_left(write):
    files = write("a.en", "\n2\n"), write("a.de", "1\n\n")
    told = r"no sentence pair in .*a.en and .*a.de is usable: in every pair a side is empty"
    with pytest.raises(UserError, match=told):
        read_parallel(*files)


def test_a_limit_below_one(write):
    path = write("a.en", "1\n")
    with pytest.raises(UserError, match="limit is 0: it must be a whole number, 1 or more"):
        read_parallel(path, path, limit=0)


# --- files without end ---


@pytest.fixture
def small_limits(monkeypatch):
    """Lower the limits, so that a test needs neither the time nor the memory of the real ones."""
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(files, "MOST_LINES", 1000)
    monkeypatch.setattr(files, "PIECE", 1 << 16)


ENDLESS = {
    "a line": b"x" * (1 << 20) + b"y",
    "lines": b"a\n" * (1 << 20),
    "zipped zeros": gzip.compress(b"\0" * (1 << 24)),
    "zipped twice and more": gzip.compress(b"line\n" * 1000) * 1000,
    "characters of four bytes": "😀".encode() * (1 << 19),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("read", [read_lines, read_text, lambda path: read_parallel(path, path)])
def test_files_without_end_are_read_up_to_the_limit(write, small_limits, read, name):
    path = write("text", ENDLESS[name])
    with pytest.raises(
        UserError, match=rf"{re.escape(str(path))} has more than (1 MB|1,000 lines): give a small"
    ):
        read(path)


def test_no_more_is_read_than_a_limit_needs(write, small_limits, monkeypatch):
    """Neither the file beyond the limit of lines, nor its faults."""
    lines = b"line\n" * 10 + b"\xff\n" * (1 << 21)
    short, long = (
        write("short", b"line\n" * 9 + b"\n" + b"line\n" * 5),
        write("long.gz", gzip.compress(lines)),
    )
    monkeypatch.setattr(files, "PIECE", 50)
    assert read_lines(long, limit=10) == ["line"] * 10
    assert read_parallel(short, long, limit=9).pairs == [("line", "line")] * 9
    with pytest.raises(UserError, match="not UTF-8 text at line 11"):
        read_parallel(short, long, limit=10)


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pieces_of_any_size_give_the_same_text(write, monkeypatch, piece, end):
    monkeypatch.setattr(files, "PIECE", piece)
    path = write("text", "\ufeffété" + end + end + "我" * 5 + end + "\ufeff" + end)
    assert read_lines(path) == ["été", "", "我" * 5, "\ufeff"]
    assert read_text(path) == "été\n\n" + "我" * 5 + "\n\ufeff\n"
    assert read_text(path, any_bytes=True).encode() == path.read_bytes()
    with pytest.raises(UserError, match=r"not UTF-8 text at line 3 \(byte 0xe6\)"):
        read_lines(write("cut", path.read_bytes()[: -4 - 2 * len(end)]))
