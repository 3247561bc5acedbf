"""npformer data: a small generated corpus, from a server on this machine and from a folder."""

import gzip

import pytest
from commands import said
from corpus_server import known, serving

from npformer.cli.main import main
from npformer.data import multi30k
from npformer.data.multi30k import corpus_files

# number of sentences
SETS = {"train": 5, "val": 2, "test_2016_flickr": 3, "test_2017_flickr": 4, "test_2017_mscoco": 2}


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
COMPLETE = DATA | {".gitignore": b"*\n"}  # what is there after the command


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
    printed = said(capsys, "data multi30k")
    assert there(inside / "data/multi30k") == COMPLETE
    for words in (
        "research and education only",
        "data/multi30k: 30 files, every checksum right\n",
        "train                 5 sentences in en, de, fr",
        "test_2016_flickr      3 sentences",
        "test_2017_mscoco      2 sentences",
    ):
        assert words in printed
    assert printed.endswith("next: npformer train --preset multi30k-en-de\n")
    for direction in multi30k.DIRECTIONS:
        assert corpus_files("data/multi30k", direction).train[0].exists()
    server.requests.clear()
    assert "every checksum right, all already there\n" in said(capsys, "data multi30k")
    assert server.requests == []


def test_some_languages_first_and_the_others_later(server, capsys):
    assert "next:" not in said(capsys, "data multi30k --languages de --folder one")
    server.requests.clear()
    out = said(capsys, "data multi30k --languages 'fr, en,fr' --folder elsewhere")
    assert len(server.requests) == 20
    assert "elsewhere: 20 files, every checksum right\n" in out
    assert "5 sentences in fr, en\n" in out
    assert out.endswith("next: npformer train elsewhere/raw/train.fr.gz elsewhere/raw/train.en.gz\n")
    out = said(capsys, "data multi30k --languages en,de --folder elsewhere")
    assert len(server.requests) == 30
    assert "20 files, every checksum right, 10 already there" in out
    assert out.endswith("multi30k-en-de --data elsewhere\n")


def test_a_new_folder_is_ignored_by_git_even_if_the_first_attempt_was_killed(source, inside):
    folder = inside / "data/multi30k"
    folder.mkdir(parents=True)
    (folder / "..gitignore.0123456789ab.partial").write_bytes(b"*")
    assert data("--from", str(source)) == 0
    assert there(folder) == COMPLETE


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
    assert "8 pairs: 1 empty, 1 too long left out, 6 kept\n" in said(
        capsys, "", *command, "--run", "all", "--unfiltered"
    )
    assert main(["train", "--resume", "some"]) == 0  # the same pairs are left out again
