"""npformer score: translate a set of sentences and compute BLEU against references."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npformer.cli.load_model import add_model_arguments, add_search_arguments, load_with_search
from npformer.cli.options import COUNT, Rule, one_of
from npformer.cli.output import note, print_data, print_line
from npformer.cli.translation_bar import TranslationBar
from npformer.data import read_lines
from npformer.errors import UserError
from npformer.generation.bleu import TOKENIZERS, require_sacrebleu, setting_of
from npformer.pretrained import weights_fingerprint
from npformer.pretrained.card import FORMAT
from npformer.storage.atomic import require_place, write_file

if TYPE_CHECKING:
    from npformer.generation.bleu import TranslationScore

EPILOG = """\
Examples: npformer score --model en-de test.en test.de
          npformer score --model runs/en-de test.lc.tok.en test.lc.tok.de --json """

RULES: tuple[Rule, ...] = ()


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument("source", help="a text file with one sentence on each line, plain or gzip")
    parser.add_argument("reference", help="a file with the reference translations, line by line")
    add_model_arguments(parser)
    add_search_arguments(parser)
    parser.add_argument(
        "--text",
        **one_of(("auto", *TOKENIZERS)),
        default="auto",
        help="the form of the references: lowercased and tokenised, or raw text as people write it; "
        "auto detects it (default: auto)",
    )
    parser.add_argument("--limit", type=COUNT, metavar="N", help="score only the first N lines")
    parser.add_argument("--out", metavar="FILE", help="write the translations to a file, one on each line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: Namespace) -> int:
    """Translate, compute BLEU and print it. Return 0."""
    sources, references = read_both(arguments.source, arguments.reference, arguments.limit)
    require_sacrebleu()
    out = arguments.out and Path(arguments.out)
    if out:
        require_place(out)
    setting = setting_of(references) if arguments.text == "auto" else arguments.text
    loaded, settings = load_with_search(arguments)
    from npformer.generation.bleu import difference_in_case, score

    with TranslationBar(len(sources)) as bar:
        found = score(
            loaded.translator, sources, references, setting=setting, progress=bar.advance, **settings
        )
    if out:
        write_file(out, "".join(f"{line}\n" for line in found.translations).encode())
    if difference := difference_in_case(found.translations, references):
        note(difference)
    weights = weights_fingerprint(loaded.model.state_dict())
    if arguments.json:
        row = {"format": FORMAT} | found._asdict() | settings | {"weights": weights}
        row |= {"source": Path(arguments.source).name, "reference": Path(arguments.reference).name}
        del row["translations"]
        print_data(json.dumps(row))
    else:
        report(found, settings, detected=arguments.text == "auto")
    return 0


def read_both(source: str, reference: str, limit: int | None) -> tuple[list[str], list[str]]:
    """Return the lines of both files, or the first `limit` of them.

    Args:
        source: The file of sentences.
        reference: The file of their translations.
        limit: The largest number of lines, or None.

    Raises:
        UserError: If a file cannot be read, or one file has more lines than the other.
    """
    sources, references = read_lines(source), read_lines(reference)
    if len(sources) != len(references):
        raise UserError(
            f"{source} has {len(sources)} lines but {reference} has {len(references)}: "
            "line n of one must translate line n of the other"
        )
    return sources[:limit], references[:limit]


def report(found: "TranslationScore", settings: dict[str, Any], *, detected: bool) -> None:
    """Print the score, the form of the text and the settings of the search.

    Args:
        found: The score.
        settings: The settings of the search.
        detected: True if the form of the text was detected and not given.
    """
    forms = {"tokenised": "lowercased and tokenised text", "raw": "text as people write it"}
    print_line(f"BLEU {found.bleu:.2f}  {found.signature}")
    how = " (detected from the references; --text overrides it)" if detected else ""
    print_line(f"counted on {forms[found.setting]}{how}")
    print_line(
        f"{found.sentences:,} sentences in {found.seconds:.1f} s, beam {settings['beam']}, "
        f"length penalty {settings['length_penalty']:g}; {found.empty} empty translations; "
        f"brevity penalty {found.brevity_penalty:.3f}"
    )
