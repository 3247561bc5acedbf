"""npformer data: download a corpus that npformer does not contain, or copy it from a folder."""

import contextlib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from npformer.cli.options import add, only_if
from npformer.cli.output import console
from npformer.data import multi30k
from npformer.data.download import KnownFile, Report, fetch, require_any, take
from npformer.data.files import read_lines
from npformer.errors import UserError
from npformer.escaping import printable, shell_word
from npformer.learn.console import text_column
from npformer.storage.atomic import is_temporary, make_folder, write_file
from npformer.validation import require_name

EPILOG = """\
Examples: npformer data multi30k
          npformer data multi30k --languages en,de --folder corpora/multi30k
          npformer data multi30k --from ../multi30k-copy
Multi30k may be used for research and education only. An interrupted download
continues where it was stopped."""

RULES = (
    only_if(
        "--base-url",
        lambda arguments: arguments.source is None,
        "for a download, and --from copies from a folder",
        "leave out one of them",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[corpus]", "the corpus: multi30k")
    add(parser, "--folder FOLDER", "the folder to write to", default=multi30k.FOLDER)
    add(
        parser,
        "--languages LANGUAGES",
        "some of en,de,fr, separated by commas (default: all)",
        default=",".join(multi30k.LANGUAGES),
    )
    add(parser, "--from FOLDER", "copy from a folder, without network", dest="source")
    add(parser, "--base-url URL", "download from a mirror of the public repository")


def run(arguments: Namespace) -> int:
    """Download or copy the files. Return 0."""
    if arguments.corpus is None:
        raise UserError("no corpus is named: give npformer data multi30k")
    require_name(arguments.corpus, ("multi30k",), "corpus")
    languages = list(dict.fromkeys(name.strip() for name in arguments.languages.split(",") if name.strip()))
    files = multi30k.files_of(languages)
    folder = Path(arguments.folder)
    if arguments.source is not None:
        require_any(files, Path(arguments.source))
    out = console()
    _say(out, f"Multi30k: {multi30k.LICENCE}; it is not part of npformer")
    _keep_out_of_git(folder)
    n_new = 0
    with _progress(out, files) as report_of:
        for file in files:
            if arguments.source is None:
                url = arguments.base_url or multi30k.BASE_URL
                n_new += fetch(file, url, folder, report=report_of(file))
            else:
                n_new += take(file, Path(arguments.source), folder, report=report_of(file))
    _conclude(out, files, n_new, folder, languages)
    return 0


def _keep_out_of_git(folder: Path) -> None:
    """Have git ignore a new folder, wherever it is: the licence forbids publishing the corpus."""
    ignore = folder / ".gitignore"
    # a folder with files may have a .gitignore of its own, or be under version control on purpose
    if folder.is_dir() and not all(map(is_temporary, folder.iterdir())):
        return
    make_folder(folder, advice="give another --folder")
    write_file(ignore, b"*\n", advice="give another --folder")


@contextlib.contextmanager
def _progress(out: Console, files: Sequence[KnownFile]) -> Iterator[Callable[[KnownFile], Report]]:
    """Show one progress bar for the bytes of all files.

    Yields:
        A function that returns the callback for the download of a file.
    """
    columns = (
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeRemainingColumn(compact=True),
        text_column("{task.description}"),  # last, so that the bar does not move with the length of the name
    )
    progress = Progress(*columns, console=out)
    task = progress.add_task("", total=sum(file.size for file in files))
    done = 0  # bytes of the files before this one

    def report_of(file: KnownFile) -> Report:
        nonlocal done
        before, done = done, done + file.size

        def report(there: int) -> None:
            progress.start()  # not before: there is no bar if nothing is downloaded
            progress.update(task, description=file.name, completed=before + there)

        return report

    try:
        yield report_of
        progress.update(task, description=f"{len(files)} files")
    finally:
        if progress.live.is_started:
            progress.stop()


def _conclude(
    out: Console, files: Sequence[KnownFile], n_new: int, folder: Path, languages: Sequence[str]
) -> None:
    """Print what the folder contains and what to do with it."""
    n_old = len(files) - n_new
    before = "" if n_old == 0 else ", all already there" if n_new == 0 else f", {n_old} already there"
    _say(out, f"{folder}: {len(files)} files, every checksum right{before}")
    for part in dict.fromkeys((*multi30k.PARTS, *multi30k.TEST_SETS)):
        n_lines = len(read_lines(multi30k.file_in(folder, part, languages[0], tokenised=False)))
        _say(out, f"  {part:<16} {n_lines:>6,} sentences in {', '.join(languages)}")
    if {"en", "de"} <= set(languages):
        _say(out, f"next: npformer train --preset multi30k-en-de{multi30k.folder_option(folder, '--data')}")
    elif len(languages) > 1:
        files_of_part = [multi30k.file_in(folder, "train", name, tokenised=False) for name in languages[:2]]
        _say(out, f"next: npformer train {' '.join(map(shell_word, files_of_part))}")


def _say(out: Console, text: str) -> None:
    out.print(printable(text), soft_wrap=True)  # a line break would spoil a command that is shown
