"""Multi30k: the table of its files, and their paths."""

import re
import subprocess

import pytest
from paths import ROOT

from npformer import UserError
from npformer.data import multi30k
from npformer.data.multi30k import DIRECTIONS, FILES, LANGUAGES, corpus_files, files_of

CORPUS = ROOT.parent / "shared" / "multi30k"


@pytest.fixture
def folder(tmp_path):
    """Make every file of the corpus, empty."""
    for file in FILES:
        (tmp_path / file.name).parent.mkdir(exist_ok=True)
        (tmp_path / file.name).touch()
    return tmp_path


@pytest.mark.parametrize("tokenised", [True, False])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_direction_is_files_of_the_table(folder, direction, tokenised):
    known = {file.name for file in FILES}
    files = corpus_files(folder, direction, tokenised)
    for part, paths in zip(("train", "val", "test_2016_flickr"), files, strict=True):
        names = [path.relative_to(folder).as_posix() for path in paths]
        assert set(names) <= known
        for name, language in zip(names, direction.split("-"), strict=True):
            assert name.startswith(f"{'tok' if tokenised else 'raw'}/{part}.")
            assert name.removesuffix(".gz").endswith(f".{language}")
    assert files == (files.train, files.valid, files.test)


def test_languages():
    assert files_of(LANGUAGES) == FILES
    assert len(files_of(["de"])) == 10
    assert {file.name.split(".")[1] for file in files_of(["en", "fr"]) if "raw" in file.name} == {"en", "fr"}
    with pytest.raises(UserError, match="language is 'cs': choose one of en, de, fr"):
        files_of(["en", "cs"])
    with pytest.raises(UserError, match="no language is given: choose from en, de, fr"):
        files_of([])


def test_a_missing_file_names_the_command(folder):
    path = folder / "tok" / "val.lc.norm.tok.de"
    path.unlink()
    message = f"there is no file {path}: download the corpus with npformer data multi30k --folder {folder}"
    with pytest.raises(UserError, match=re.escape(message)):
        corpus_files(folder, "en-de")
    assert corpus_files(folder, "en-fr")
    assert corpus_files(folder, "en-de", tokenised=False)


def test_the_command_finds_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert multi30k.folder_option("data/multi30k/") == ""
    assert multi30k.folder_option("my data", "--data") == " --data 'my data'"
    with pytest.raises(UserError, match=r"npformer data multi30k$"):
        corpus_files(multi30k.FOLDER + "/.")
    with pytest.raises(UserError, match="direction is 'de-fr': choose one of en-de, de-en, en-fr, fr-en"):
        corpus_files("nowhere", "de-fr")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_git_ignores_the_corpus_and_no_code():
    for path, ignored in ((f"{multi30k.FOLDER}/raw/train.en.gz", True), ("npformer/data/multi30k.py", False)):
        done = subprocess.run(["git", "check-ignore", "--quiet", "--no-index", path], cwd=ROOT, check=False)
        assert (done.returncode == 0) is ignored, path


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not at hand")
def test_the_checksums_are_those_of_the_corpus():
    assert all(file.is_whole(CORPUS) for file in FILES)
