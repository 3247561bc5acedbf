"""Multi30k: 29,000 English captions of photographs with their German and French translations.

Its licence allows research and education only, so the corpus is not part of npformer:
`npformer data multi30k` downloads it.

Source: Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions.
"""

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from npformer.data.download import KnownFile
from npformer.errors import UserError
from npformer.storage.text import shell_word
from npformer.storage.validation import require_choice

FOLDER = "data/multi30k"
LICENCE = "for research and education only"
LANGUAGES = ("en", "de", "fr")
DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en")
PARTS = ("train", "val", "test_2016_flickr")

# one commit, whose files do not change
BASE_URL = (
    "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
)

# SHA-256, bytes, name. The files in raw/ are the original text; those in tok/ are in lower case, with
# uniform punctuation, tokenised by Moses.
_SUMS = """\
d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f  568929 raw/train.en.gz
726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6  637044 raw/train.de.gz
622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c  604242 raw/train.fr.gz
14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28   21650 raw/val.en.gz
f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a   24681 raw/val.de.gz
ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9   23001 raw/val.fr.gz
611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9   21077 raw/test_2016_flickr.en.gz
9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8   22890 raw/test_2016_flickr.de.gz
6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90   22310 raw/test_2016_flickr.fr.gz
08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119 1837696 tok/train.lc.norm.tok.en
cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505 2150008 tok/train.lc.norm.tok.de
8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1 2235588 tok/train.lc.norm.tok.fr
46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec   64608 tok/val.lc.norm.tok.en
97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00   77273 tok/val.lc.norm.tok.de
b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a   78242 tok/val.lc.norm.tok.fr
5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2   63307 tok/test_2016_flickr.lc.norm.tok.en
c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4   71917 tok/test_2016_flickr.lc.norm.tok.de
1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836   76394 tok/test_2016_flickr.lc.norm.tok.fr
"""


def _read_sums() -> Iterator[KnownFile]:
    for line in _SUMS.splitlines():
        sha256, size, name = line.split()
        yield KnownFile(name, int(size), sha256)


FILES = tuple(_read_sums())


class CorpusFiles(NamedTuple):
    """The paths of a direction: for each part, the source and its translation, line by line."""

    train: tuple[Path, Path]
    valid: tuple[Path, Path]
    test: tuple[Path, Path]


def corpus_files(
    folder: str | PathLike[str] = FOLDER, direction: str = "en-de", tokenised: bool = True
) -> CorpusFiles:
    """Return the files of one direction in a folder that `npformer data multi30k` wrote.

    Args:
        folder: The folder of the corpus.
        direction: "en-de", "de-en", "en-fr" or "fr-en".
        tokenised: Return the files in tok/, lowercased and tokenised, not those in raw/.

    Raises:
        UserError: If the direction is unknown, or a file is missing.
    """
    require_choice("direction", direction, DIRECTIONS)
    source, target = direction.split("-")
    train, valid, test = (
        (file_in(folder, part, source, tokenised), file_in(folder, part, target, tokenised)) for part in PARTS
    )
    for path in (*train, *valid, *test):
        if not path.is_file():
            command = f"npformer data multi30k{folder_option(folder)}"
            raise UserError(f"there is no file {path}: download the corpus with {command}")
    return CorpusFiles(train, valid, test)


def file_in(folder: str | PathLike[str], part: str, language: str, tokenised: bool) -> Path:
    """Return the path of one file of the corpus in its folder.

    Args:
        folder: The folder of the corpus.
        part: One of PARTS.
        language: One of LANGUAGES.
        tokenised: The file in tok/, not the one in raw/.
    """
    name = f"tok/{part}.lc.norm.tok.{language}" if tokenised else f"raw/{part}.{language}.gz"
    return Path(folder, name)


def files_of(languages: Iterable[str]) -> tuple[KnownFile, ...]:
    """Return the known files of these languages.

    Raises:
        UserError: If a language is unknown, or none is given.
    """
    wanted = tuple(languages)
    for language in wanted:
        require_choice("language", language, LANGUAGES)
    if not wanted:
        raise UserError(f"no language is given: choose from {', '.join(LANGUAGES)}")
    suffixes = tuple(f".{language}" for language in wanted)
    return tuple(file for file in FILES if file.name.removesuffix(".gz").endswith(suffixes))


def folder_option(folder: str | PathLike[str], option: str = "--folder") -> str:
    """Return the option by which a command finds the corpus, or "" for the default folder."""
    return "" if Path(folder) == Path(FOLDER) else f" {option} {shell_word(folder)}"
