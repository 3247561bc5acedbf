"""npformer data: a small generated corpus, from a server on this machine and from a folder."""

import gzip
import signal

import pytest
from commands import refused
from corpus_server import known, serving

from npformer.cli.main import main
from npformer.data import multi30k
from npformer.data.multi30k import corpus_files

SETS = {
    "train": 5,
    "val": 2,
    "test_2016_flickr": 3,
    "test_2017_flickr": 4,
    "test_2017_mscoco": 2,
}  # number of sentences


def made_up():
    """Return sentences that contain their number and language, in the layout of Multi30k."""
    files = {}
    for part, n in SETS.items():
        for language in multi30k.LANGUAGES:
            text = "".join(f"{part} {i} {language}\n" for i in range(n)).encode()
            files[f"raw/{part}.{language}.gz"] = gzip.compress(text, mtime=0)
            files[f"tok/{part}.lc.norm.tok.{language}"] = text * 200
    return files


DATA = made_up()


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """Work in an empty folder, with the table of files replaced by that of the generated corpus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(multi30k, "FILES", tuple(known(name, data) for name, data in DATA.items()))
    monkeypatch.setattr("npformer.data.download.time.sleep", lambda seconds: None)
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    with serving(dict(DATA)) as server:
        monkeypatch.setattr(multi30k, "BASE_URL", server.url())
        yield server


@pytest.fixture
def source(inside):
    """Return a folder with the whole corpus."""
    for name, data in DATA.items():
        (inside / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / "copy" / name).write_bytes(data)
    return inside / "copy"


def data(*arguments):
    return main(["data", "multi30k", *arguments])


def there(folder):
    """Return the names of all files in a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_the_whole_corpus(server, inside, capsys):
    assert data() == 0
    assert there(inside / "data/multi30k") == DATA | {".gitignore": b"*\n"}
    printed = capsys.readouterr().out
    assert "research and education only" in printed
    assert "data/multi30k: 30 files, every checksum right\n" in printed
    assert "train                 5 sentences in en, de, fr" in printed
    assert "test_2016_flickr      3 sentences" in printed
    assert "test_2017_mscoco      2 sentences" in printed
    assert printed.endswith("next: npformer train --preset multi30k-en-de\n")
    for direction in multi30k.DIRECTIONS:
        assert corpus_files("data/multi30k", direction).train[0].exists()


def test_nothing_is_downloaded_twice(server, capsys):
    data()
    server.requests.clear()
    assert data() == 0
    assert server.requests == []
    assert "every checksum right, all already there\n" in capsys.readouterr().out


def test_some_languages_first_and_the_others_later(server, capsys):
    assert data("--languages", "fr, en,fr", "--folder", "elsewhere") == 0
    assert len(server.requests) == 20
    said = capsys.readouterr().out
    assert "elsewhere: 20 files, every checksum right\n" in said
    assert "5 sentences in fr, en\n" in said
    assert said.endswith("next: npformer train elsewhere/raw/train.fr.gz elsewhere/raw/train.en.gz\n")
    assert data("--languages", "en,de", "--folder", "elsewhere") == 0
    assert len(server.requests) == 30
    said = capsys.readouterr().out
    assert "20 files, every checksum right, 10 already there" in said
    assert said.endswith("multi30k-en-de --data elsewhere\n")


def test_a_single_language_has_no_next_command(server, capsys):
    assert data("--languages", "de") == 0
    assert "next:" not in capsys.readouterr().out


def test_ctrl_c_and_the_same_command_again(server, inside, monkeypatch, capsys):
    server.cuts = [None] * 12 + [20]  # Ctrl-C comes in the pause that follows
    monkeypatch.setattr("npformer.data.download.time.sleep", lambda _: signal.raise_signal(signal.SIGINT))
    assert data() == 130
    assert "stopped" in capsys.readouterr().err
    stopped = there(inside / "data/multi30k")
    (part,) = (name for name in stopped if name.endswith(".part"))
    assert len(stopped) == 1 + 12 + 1
    server.requests.clear()
    assert data() == 0
    assert server.requests[0] == (part.removesuffix(".part"), 20)
    assert there(inside / "data/multi30k") == DATA | {".gitignore": b"*\n"}


def test_cut_connections(server, inside):
    server.cuts = [5, 10, 20, 1000, 0, 500]
    assert data() == 0
    assert there(inside / "data/multi30k") == DATA | {".gitignore": b"*\n"}


def test_another_address(server, monkeypatch):
    address = multi30k.BASE_URL
    monkeypatch.setattr(multi30k, "BASE_URL", "http://127.0.0.1:9/")
    assert data("--base-url", address) == 0
    assert len(server.requests) == 30


def test_a_copy_from_a_folder(source, inside, capsys):
    assert data("--from", str(source)) == 0
    assert "data/multi30k: 30 files, every checksum right\n" in capsys.readouterr().out
    assert there(inside / "data/multi30k") == DATA | {".gitignore": b"*\n"}
    assert there(source) == DATA
    assert data("--from", str(source)) == 0
    assert "all already there" in capsys.readouterr().out


def test_a_new_folder_is_ignored_by_git_even_if_the_first_attempt_was_killed(source, inside):
    folder = inside / "data/multi30k"
    folder.mkdir(parents=True)
    (folder / "..gitignore.partial").write_bytes(b"*")
    assert data("--from", str(source)) == 0
    assert there(folder) == DATA | {".gitignore": b"*\n"}


def test_the_source_and_the_target_are_the_same_folder(source, capsys):
    assert data("--from", str(source), "--folder", str(source)) == 0
    assert there(source) == DATA  # an existing folder gets no .gitignore either


def test_a_damaged_file_in_the_folder(source, inside, capsys):
    path = source / "tok/val.lc.norm.tok.de"
    path.write_bytes(path.read_bytes().replace(b"val 1", b"val 2"))
    assert "copy/tok/val.lc.norm.tok.de is damaged" in refused(capsys, "data", "multi30k", "--from", "copy")
    assert not (inside / "data/multi30k/tok/val.lc.norm.tok.de").exists()
    assert data("--from", "copy", "--languages", "en,fr") == 0


def test_a_wrong_file_at_the_address(server, inside, capsys):
    server.files["raw/val.de.gz"] = b"x" * len(DATA["raw/val.de.gz"])
    said = refused(capsys, "data", "multi30k")
    assert "raw/val.de.gz is not the expected file" in said
    assert "--from" in said
    assert not (inside / "data/multi30k/raw/val.de.gz").exists()


def test_a_missing_file(server, capsys):
    del server.files["tok/train.lc.norm.tok.fr"]
    said = refused(capsys, "data", "multi30k")
    assert f"there is no {server.url()}tok/train.lc.norm.tok.fr (HTTP 404)" in said
    assert "--base-url" in said


def test_no_network(capsys, monkeypatch):
    monkeypatch.setattr(multi30k, "BASE_URL", "http://127.0.0.1:9")
    assert data() == 2
    printed = capsys.readouterr()
    assert "no answer" in printed.err
    assert "--from" in printed.err
    assert printed.out.endswith("part of npformer\n")  # an empty bar is not shown either


# --- the messages of training about its files ---


def test_train_reports_the_pairs_that_it_leaves_out(inside, capsys):
    english = ["a dog runs .", "the cat sleeps .", "a cat eats the fish .", "dogs run .", "", "a dog runs ."]
    french = ["un chien court .", "le chat dort .", "un chat mange le poisson .", "ils courent .", "oui", "."]
    for name, lines, odd in (("train.en", english, "dogs run"), ("train.fr", french, "bla" * 30)):
        (inside / name).write_text("\n".join([*lines, lines[0], odd]) + "\n")
    settings = ("d_model=8", "d_ff=8", "n_heads=1", "n_layers=1")
    command = ["train", "train.en", "train.fr", "--steps=1", "--max-length=5", "--min-count=1"]
    command += [f"--set={setting}" for setting in settings]
    assert main([*command, "--run", "some"]) == 0
    told = "8 pairs: 1 empty, 1 too long, 1 of wildly different lengths, 1 repeated left out, 4 kept\n"
    assert told in capsys.readouterr().out
    assert main([*command, "--run", "all", "--unfiltered"]) == 0
    assert "8 pairs: 1 empty, 1 too long left out, 6 kept\n" in capsys.readouterr().out
    assert main(["train", "--resume", "some"]) == 0  # the same pairs are left out again
    assert main(["train", "--resume", "some", "--unfiltered"]) == 2
    assert "--unfiltered has no effect with --resume" in capsys.readouterr().err
