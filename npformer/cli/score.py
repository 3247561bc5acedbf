"""npformer score: translate a set of sentences and compute BLEU against references."""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npformer.cli.load_model import add_model_arguments, add_search_arguments, load_with_search
from npformer.cli.options import COUNT, SEED, add
from npformer.cli.output import note, print_data, print_line
from npformer.cli.translation_bar import TranslationBar
from npformer.data import read_lines
from npformer.errors import UserError, quantity
from npformer.generation.bleu import TOKENIZERS, require_sacrebleu, setting_of
from npformer.generation.bleu_statistics import SAMPLES, with_half_width
from npformer.generation.bleu_statistics import SEED as SAMPLES_SEED
from npformer.generation.invented_words import known_words
from npformer.pretrained import weights_fingerprint
from npformer.pretrained.measured_score import FORMAT
from npformer.storage.atomic import require_place, write_file

if TYPE_CHECKING:
    from npformer.generation.bleu import TranslationScore
    from npformer.generation.invented_words import InventedWords

EPILOG = """\
Examples: npformer score --model en-de test.en test.de
          npformer score --model en-de test.en test.de --beam 1 --known-words train.de
          npformer score --model runs/en-de test.lc.tok.en test.lc.tok.de --json

± is half of the 95 % interval of BLEU: 1,000 times, as many sentences as there are
are drawn with replacement and scored. Words count as invented if they are neither in
the source sentence nor in the file of --known-words."""

MOST_SHOWN = 10  # invented words


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "source", "a text file with one sentence on each line, plain or gzip")
    add(parser, "reference", "a file with the reference translations, line by line")
    add_model_arguments(parser)
    add_search_arguments(parser)
    add(
        parser,
        "--text",
        "the form of the references: lowercased and tokenised, or raw text as people write it; "
        "auto detects it",
        ("auto", *TOKENIZERS),
        default="auto",
    )
    add(
        parser,
        "--known-words FILE",
        "a text in the target language, such as that of the training: words of the translations that "
        "neither it nor the source has are counted as invented",
    )
    add(
        parser,
        "--seed",
        f"the seed of the samples that give the interval of BLEU (default: {SAMPLES_SEED}, sacrebleu's)",
        SEED,
        default=SAMPLES_SEED,
    )
    add(parser, "--limit N", "score only the first N lines", COUNT)
    add(parser, "--out FILE", "write the translations to a file, one on each line")
    add(parser, "--json", "print one JSON object")


def run(arguments: Namespace) -> int:
    """Translate, compute BLEU and print it. Return 0."""
    sources, references = _read_both(arguments.source, arguments.reference, arguments.limit)
    require_sacrebleu()
    out = arguments.out and Path(arguments.out)
    if out:
        require_place(out)
    words = known_words(read_lines(arguments.known_words)) if arguments.known_words else None
    for read in (arguments.source, arguments.reference, arguments.known_words):
        if read and out and out.exists() and out.samefile(read):
            raise UserError(f"--out {out} is a file that is read: give another one")
    setting = setting_of(references) if arguments.text == "auto" else arguments.text
    loaded, settings = load_with_search(arguments)
    from npformer.generation.bleu import difference_in_case, score

    measured = {"setting": setting, "known_words": words, "seed": arguments.seed}
    with TranslationBar(len(sources)) as bar:
        found = score(loaded, sources, references, progress=bar.advance, **measured, **settings)
    if out:
        write_file(out, "".join(f"{line}\n" for line in found.translations).encode())
    if difference := difference_in_case(found.translations, references):
        note(difference)
    if arguments.json:
        row = json_row(found, arguments) | settings
        row |= {"weights": weights_fingerprint(loaded.model.state_dict())}
        print_data(json.dumps(row))
    else:
        report(found, settings, detected=arguments.text == "auto")
    return 0


def _read_both(source: str, reference: str, limit: int | None) -> tuple[list[str], list[str]]:
    """Return the lines of both files, or the first `limit` of them.

    Raises:
        UserError: If a file cannot be read, or one file has more lines than the other.
    """
    sources, references = read_lines(source, limit=limit), read_lines(reference, limit=limit)
    if len(sources) != len(references):
        raise UserError(
            f"{source} has {quantity(len(sources), 'line')} but {reference} has {len(references)}: "
            "line n of one must translate line n of the other"
        )
    return sources, references


def json_row(found: "TranslationScore", arguments: Namespace) -> dict[str, Any]:
    """Return what --json prints of a score: all but the translations, with the names of the files."""
    row: dict[str, Any] = {"format": FORMAT} | found._asdict()
    row |= {"source": Path(arguments.source).name, "reference": Path(arguments.reference).name}
    row |= {"samples": SAMPLES, "seed": arguments.seed}
    row["by_length"] = [asdict(each) for each in found.by_length]
    del row["translations"], row["invented"]
    if found.invented is not None:
        row |= {
            "known_words": Path(arguments.known_words).name,
            "words": found.invented.words,
            "invented": len(found.invented.invented),
            "invented_in_reference": found.invented.in_reference,
            "invented_words": sorted(set(found.invented.invented)),
        }
    return row


def report(found: "TranslationScore", settings: dict[str, Any], *, detected: bool) -> None:
    """Print the score, the form of the text and the settings of the search.

    Args:
        found: The score.
        settings: The settings of the search.
        detected: True if the form of the text was detected and not given.
    """
    forms = {"tokenised": "lowercased and tokenised text", "raw": "text as people write it"}
    print_line(f"BLEU {with_half_width(found.bleu, found.half_width)}  {found.signature}")
    how = " (detected from the references; --text overrides it)" if detected else ""
    print_line(f"counted on {forms[found.setting]}{how}")
    print_line(
        f"{quantity(found.sentences, 'sentence')} in {found.seconds:.1f} s, beam {settings['beam']}, "
        f"length penalty {settings['length_penalty']:g}; {quantity(found.empty, 'empty translation')}; "
        f"brevity penalty {found.brevity_penalty:.3f}"
    )
    print_line("by the length of the source:")
    for part in found.by_length:
        score = with_half_width(part.bleu, part.half_width)
        print_line(f"  {part.lengths:>5} words  BLEU {score:<13} {quantity(part.sentences, 'sentence')}")
    if found.invented is not None:
        report_invented(found.invented)


def report_invented(found: "InventedWords") -> None:
    """Print the share of invented words, and some of them."""
    different = list(dict.fromkeys(found.invented))
    print_line(
        f"{100 * found.share:.2f} % of the words are invented: {len(found.invented):,} of {found.words:,}, "
        f"of which {found.in_reference:,} are also in the reference"
    )
    if different:
        more = ", ..." if len(different) > MOST_SHOWN else ""
        print_line(f"  {', '.join(different[:MOST_SHOWN])}{more}")
