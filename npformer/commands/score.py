"""npformer score: translate a set of sentences, and hold the translations against references by BLEU."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from npformer.atomic import write_atomically
from npformer.bleu import TOKENIZERS, require_sacrebleu, setting_of
from npformer.commands.trained import add_choice_arguments, add_search_arguments, chosen_search
from npformer.data import read_lines
from npformer.errors import UserError
from npformer.pretrained import weights_fingerprint
from npformer.settings import require_count

BEAM = 5  # with which the published scores were counted
EPILOG = """\
Examples: npformer score --pretrained en-de test.en test.de
          npformer score --run runs/en-de test.lc.tok.en test.lc.tok.de --json """


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("source", help="a text file to translate, one sentence a line, plain or gzip")
    parser.add_argument("reference", help="its translation by people, line by line")
    add_choice_arguments(parser, "translate with")
    add_search_arguments(parser, beam=BEAM)
    parser.add_argument(
        "--text",
        choices=("auto", *TOKENIZERS),
        default="auto",
        help="how the references are written: lowercased and tokenised, or as people write; "
        "auto looks at them (auto)",
    )
    parser.add_argument("--limit", type=int, help="only the first so many lines")
    parser.add_argument("--out", metavar="FILE", help="write the translations there, one a line")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")


def run(arguments) -> int:
    """Returns 0."""
    sources, references = read_both(arguments.source, arguments.reference, arguments.limit)
    require_sacrebleu()
    out = arguments.out and Path(arguments.out)
    if out:
        require_place(out)
    setting = setting_of(references) if arguments.text == "auto" else arguments.text
    translator, settings = chosen_search(arguments, beam=BEAM)
    from npformer.decoding.score import score

    with progress_bar(len(sources)) as progress:
        found = score(translator, sources, references, setting=setting, progress=progress, **settings)
    if out:
        write(out, found.translations)
    weights = weights_fingerprint(translator.model.state())
    if arguments.json:
        row = found._asdict() | settings | {"weights": weights}
        row |= {"source": Path(arguments.source).name, "reference": Path(arguments.reference).name}
        del row["translations"]
        print(json.dumps(row))
    else:
        report(found, settings, looked=arguments.text == "auto")
    return 0


def read_both(source: str, reference: str, limit: int | None) -> tuple[list[str], list[str]]:
    """The lines of two files, or the first so many. Errors: UserError where one has more lines."""
    if limit is not None:
        require_count("--limit", limit)
    sources, references = read_lines(source), read_lines(reference)
    if len(sources) != len(references):
        raise UserError(
            f"{source} has {len(sources)} lines but {reference} has {len(references)}: "
            "line n of one must translate line n of the other"
        )
    return sources[:limit], references[:limit]


def report(found, settings: dict, *, looked: bool) -> None:
    """Print the score, what it was counted on, and how."""
    forms = {"tokenised": "lowercased and tokenised text", "raw": "text as people write it"}
    print(f"BLEU {found.bleu:.2f}  {found.signature}")
    how = " (as the references look; --text says otherwise)" if looked else ""
    print(f"counted on {forms[found.setting]}{how}")
    print(
        f"{found.sentences:,} sentences in {found.seconds:.1f} s, beam {settings['beam']}, "
        f"length penalty {settings['length_penalty']:g}; {found.empty} empty translations; "
        f"brevity penalty {found.brevity_penalty:.3f}"
    )


def require_place(path: Path) -> None:
    """Errors: UserError where no file can be: told before minutes of work, not after."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: give a file in it")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written: there is no folder {path.parent}")


def write(path: Path, translations: list[str]) -> None:
    """One translation a line. Errors: UserError where the file cannot be written."""
    try:
        write_atomically(path, "".join(f"{line}\n" for line in translations).encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): give another place") from None


@contextmanager
def progress_bar(sentences: int):
    """A bar on standard error, where that is a terminal. Yields what is told of finished sentences."""
    columns = (
        TextColumn("translating"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    shown = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    task = shown.add_task("", total=sentences)
    with shown:
        yield lambda finished: shown.advance(task, finished)
