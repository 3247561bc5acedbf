"""npformer pretrained: show the model cards of the translators that ship, or export a run as such a file."""

import dataclasses
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from npformer.cli.options import excludes, needs
from npformer.cli.output import console, print_data, print_line
from npformer.data import read_lines
from npformer.data.casing import Casing
from npformer.data.codecs import codecs_from_checkpoint
from npformer.data.subwords import SubwordCodec
from npformer.errors import UserError, in_context
from npformer.learn.console import styled
from npformer.pretrained import Card, MeasuredScore, Pretrained, names, read_pretrained, save_pretrained
from npformer.pretrained.loading import find_model
from npformer.pretrained.template import TO_WRITE, card_template, require_filled_in
from npformer.storage.atomic import create_atomically, explain_os_errors
from npformer.storage.checkpoint import Checkpoint, load_checkpoint
from npformer.storage.json_files import read_json
from npformer.storage.text import printable

EPILOG = """\
Examples: npformer pretrained en-de
          npformer pretrained --export runs/en-de
          npformer pretrained --export runs/en-de --out en-de.safetensors --casing raw.de
          npformer score --model en-de.safetensors test.en test.de --json > test.json

An exported file has a model card. The second command writes the template of one to
runs/en-de/card.json, with everything that the run knows: languages, settings, hours.
Replace what begins with TO WRITE: the data, their licence, the command, the machine
and a sentence to try. Then the third command exports the run. A card that exists is
never overwritten.

Scores come only from npformer score, measured with the exported file: export once
more with --scores test.json, so that the card contains them."""

RULES = (
    needs("--out --card --casing --scores --last", "--export"),
    needs("--casing --scores", "--out"),
    excludes("--export", "name --markdown --json", "it shows no card"),
    excludes("--json", "--markdown", "these are two forms of the same"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "name", nargs="?", help="the translator to show, or its file (default: all that ship)"
    )
    parser.add_argument("--markdown", action="store_true", help="print the card as a Markdown section")
    parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
    parser.add_argument(
        "--export",
        metavar="RUN",
        help="export this run, or this checkpoint; without --out, write the template of its model card",
    )
    parser.add_argument(
        "--last", action="store_true", help="export the last checkpoint of the run, not its best one"
    )
    parser.add_argument("--out", metavar="FILE", help="the file to write, NAME.safetensors")
    parser.add_argument(
        "--card",
        metavar="FILE",
        help="the model card, a JSON file (default: card.json in the folder of the run); "
        "if there is none yet, its template is written",
    )
    parser.add_argument(
        "--casing",
        metavar="FILE",
        help="a text in the target language with capitals, from which their usual use is learned",
    )
    parser.add_argument(
        "--scores",
        metavar="FILE",
        nargs="+",
        default=[],
        help="files with the output of npformer score --json",
    )


def run(arguments: Namespace) -> int:
    """Show the cards, or export. Return 0."""
    if arguments.export is not None:
        return export(arguments)
    found = {name: read_pretrained(name) for name in ([arguments.name] if arguments.name else names())}
    if arguments.json:
        rows = [
            {"name": name, "parameters": each.model.count_parameters()} | each.card.to_dict()
            for name, each in found.items()
        ]
        print_data(json.dumps(rows))
    elif arguments.markdown:
        sections = (each.card.section(Path(name).stem) for name, each in found.items())
        print_data("\n".join(sections).rstrip("\n"))
    elif found:
        for name, each in found.items():
            show(name, each)
    else:
        print_line("No translator ships with this copy of npformer: train one with npformer train.")
    return 0


def show(name: str, found: Pretrained) -> None:
    """Print the card of a translator on the terminal, and the number of its parameters."""
    out, card = console(), found.card
    out.print(styled((printable(name), "bold"), f"  {printable(card.title)}"))
    lines = [("parameters", f"{found.model.count_parameters():,}"), *card.lines()]
    for what, text in lines:
        out.print(f"  {what:<11} {printable(text)}", soft_wrap=True)
    for each in card.scores:
        words = f"{each.bleu:.2f} on {each.reference}, beam {each.beam}: {each.signature}"
        out.print(f"  {'BLEU':<11} {printable(words)}", soft_wrap=True)


def export(arguments: Namespace) -> int:
    """Write the file of the translator, or first the template of its model card. Return 0."""
    source = find_model(arguments.export, last=arguments.last)
    checkpoint = load_checkpoint(source)
    place = Path(arguments.card) if arguments.card else source.parent / "card.json"
    if not place.exists():
        return begin_card(checkpoint, place, source.parent, exporting=arguments.out is not None)
    if not arguments.out:
        raise UserError(f"the card {place} exists and is left as it is: give --out FILE to export with it")
    card, path = read_card(str(place), arguments.scores), Path(arguments.out)
    if arguments.casing:
        checkpoint = with_casing(checkpoint, arguments.casing)
    save_pretrained(checkpoint, path, card)
    read_pretrained(path)  # a file that cannot be read is noticed at once
    print_line(f"wrote {path}: {path.stat().st_size / 1e6:.2f} MB, {len(card.scores)} scores")
    return 0


def begin_card(checkpoint: Checkpoint, place: Path, run: Path, *, exporting: bool) -> int:
    """Write the template of a model card. Return 0.

    Args:
        checkpoint: The checkpoint that will be exported.
        place: The file of the card.
        run: The folder of the run.
        exporting: Whether the user asked for the exported file, which cannot be made without a card.

    Raises:
        UserError: If the file exists or cannot be written, or if the user asked for the exported file.
    """
    text = json.dumps(card_template(checkpoint, run), indent=2, ensure_ascii=False)
    with explain_os_errors(place, "written", "give another --card"):
        create_atomically(place, f"{text}\n".encode())
    if exporting:
        raise UserError(
            f"there was no card {place}, and its template is there now: replace what begins with {TO_WRITE} "
            "and run the same command again"
        )
    print_line(f"wrote {place}: replace what begins with {TO_WRITE}, then export with --out FILE")
    return 0


def with_casing(checkpoint: Checkpoint, path: str) -> Checkpoint:
    """Return the checkpoint with a target codec that writes capitals as the text in a file does.

    Raises:
        UserError: If the codec is one of whole words, or if the text has no capitals.
    """
    target = codecs_from_checkpoint(checkpoint).target
    if not isinstance(target, SubwordCodec):
        raise UserError("--casing is for translators that write subwords, and this one writes whole words")
    target = dataclasses.replace(target, casing=Casing.from_lines(read_lines(path)))
    return dataclasses.replace(checkpoint, target_codec=target.to_json())


def read_card(path: str, scores: Sequence[str]) -> Card:
    """Return the model card of a JSON file, with the scores in other files.

    Args:
        path: The file with the card.
        scores: The files with the output of `npformer score --json`.

    Raises:
        UserError: If a file cannot be read, or is not a card or a score.
    """
    content = read_json(Path(path), path, "correct it")
    if isinstance(content, dict) and "scores" in content:
        raise UserError(f"{path} has scores: leave them out, and give measured ones with --scores")
    if isinstance(content, dict):
        require_filled_in(content, Path(path))
    with in_context(path):
        card = Card.from_dict(content)
    measured = []
    for file in scores:
        content = read_json(Path(file), file, "correct it")
        with in_context(file):
            measured.append(MeasuredScore.from_dict(content))
    return dataclasses.replace(card, scores=tuple(measured))
