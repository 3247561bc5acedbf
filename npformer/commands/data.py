"""npformer data: fetch a corpus that npformer does not carry, or take it from a folder."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from npformer.data import multi30k
from npformer.data.download import KnownFile, Report, fetch, take
from npformer.data.files import read_lines
from npformer.errors import UserError
from npformer.settings import choose_preset
from npformer.terminal import console

EPILOG = """\
Examples: npformer data multi30k
          npformer data multi30k --languages en,de --folder corpora/multi30k
          npformer data multi30k --from ../multi30k-copy
Multi30k may be used for research and education only. A download that is stopped goes on where it was."""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("corpus", nargs="?", help="which corpus: multi30k")
    parser.add_argument(
        "--folder", default=multi30k.FOLDER, help=f"the folder to write to ({multi30k.FOLDER})"
    )
    parser.add_argument(
        "--languages", default=",".join(multi30k.LANGUAGES), help="which of en,de,fr, with commas (all)"
    )
    parser.add_argument("--from", dest="source", metavar="FOLDER", help="copy from a folder: no network")
    parser.add_argument("--base-url", metavar="URL", help="fetch from a mirror of the public repository")


def run(arguments) -> int:
    """Returns 0, with every file in its place."""
    if arguments.corpus is None:
        raise UserError("no corpus is named: give npformer data multi30k")
    choose_preset(arguments.corpus, ("multi30k",), "corpus")
    if arguments.source and arguments.base_url:
        raise UserError("--from and --base-url name two origins: give one of them")
    languages = list(dict.fromkeys(name.strip() for name in arguments.languages.split(",") if name.strip()))
    files = multi30k.files_of(languages)
    folder = Path(arguments.folder)
    out = console()
    _say(out, f"Multi30k: {multi30k.LICENCE}; nothing of it is part of npformer")
    _keep_out_of_git(folder)
    n_new = get_all(out, files, folder, arguments.source, arguments.base_url or multi30k.BASE_URL)
    _conclude(out, files, n_new, folder, languages)
    return 0


def _keep_out_of_git(folder: Path) -> None:
    """Have git ignore a new folder, wherever it lies: the licence lets nobody publish the corpus."""
    with contextlib.suppress(OSError):  # one that is there may have a .gitignore of its own
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n")


def get_all(out, files: Sequence[KnownFile], folder: Path, source: str | None, base_url: str) -> int:
    """Fetch the files, or take them from the source. Returns how many were not there already."""
    n_new = 0
    with _progress(out, files) as report_of:
        for file in files:
            if source is None:
                n_new += fetch(file, base_url, folder, report=report_of(file))
            else:
                n_new += take(file, Path(source), folder, report=report_of(file))
    return n_new


@contextlib.contextmanager
def _progress(out, files: Sequence[KnownFile]):
    """One bar for all the bytes. Yields a function that makes the callback of a file's download."""
    columns = (
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}"),  # last: names differ in length, and the bar shall not jump
    )
    progress = Progress(*columns, console=out)
    task = progress.add_task("", total=sum(file.size for file in files))
    done = 0  # bytes of the files before this one

    def report_of(file: KnownFile) -> Report:
        nonlocal done
        before, done = done, done + file.size

        def report(there: int) -> None:
            progress.start()  # not before: where nothing comes there is no bar
            progress.update(task, description=file.name, completed=before + there)

        return report

    try:
        yield report_of
        progress.update(task, description=f"{len(files)} files")
    finally:
        if progress.live.is_started:
            progress.stop()


def _conclude(out, files: Sequence[KnownFile], n_new: int, folder: Path, languages: Sequence[str]) -> None:
    """What there is now, and what to do with it."""
    n_old = len(files) - n_new
    before = "" if n_old == 0 else ", all there before" if n_new == 0 else f", {n_old} there before"
    _say(out, f"{folder}: {len(files)} files, every checksum right{before}")
    for part in multi30k.PARTS:
        n_lines = len(read_lines(multi30k.file_in(folder, part, languages[0], tokenised=False)))
        _say(out, f"  {part:<16} {n_lines:>6,} sentences in {', '.join(languages)}")
    if {"en", "de"} <= set(languages):
        _say(out, f"next: npformer train --recipe multi30k-en-de{multi30k.folder_option(folder, '--data')}")
    elif len(languages) > 1:
        files_of_part = [multi30k.file_in(folder, "train", name, tokenised=False) for name in languages[:2]]
        _say(out, f"next: npformer train {' '.join(map(str, files_of_part))}")


def _say(out, text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)  # a command that is shown must not be broken
