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
from npformer.escaping import shell_word
from npformer.validation import require_choice

FOLDER = "data/multi30k"
LICENCE = "for research and education only"
LANGUAGES = ("en", "de", "fr")
DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en")
PARTS = ("train", "val", "test_2016_flickr")  # of a training
TEST_SETS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")

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
76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074   19138 raw/test_2017_flickr.en.gz
a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee   21471 raw/test_2017_flickr.de.gz
3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496   20434 raw/test_2017_flickr.fr.gz
aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58    8844 raw/test_2017_mscoco.en.gz
799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338   10230 raw/test_2017_mscoco.de.gz
754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0    9751 raw/test_2017_mscoco.fr.gz
c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f   56123 tok/test_2017_flickr.lc.norm.tok.en
02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6   65228 tok/test_2017_flickr.lc.norm.tok.de
c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4   69537 tok/test_2017_flickr.lc.norm.tok.fr
fe69ae004d71c42ead0301e70c57de5b1b6b5fb7f52210d42b22801e98e656f3   25380 tok/test_2017_mscoco.lc.norm.tok.en
e2825990b8a4e5289d2cdba801d57c187810bab9b4f5d87a30c35800a0d871b6   30464 tok/test_2017_mscoco.lc.norm.tok.de
0b6a4620f02b6b9acf7811fda23f90fed9c6baa0b96aa224db50a273078c84d1   31725 tok/test_2017_mscoco.lc.norm.tok.fr
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
        part: One of PARTS or TEST_SETS.
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
