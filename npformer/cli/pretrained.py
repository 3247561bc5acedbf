"""npformer pretrained: show the model cards of the translators that ship, or export a run as such a file."""

import dataclasses
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from rich.markup import escape

from npformer.cli.terminal import console
from npformer.data import read_lines
from npformer.data.casing import Casing
from npformer.data.codecs import codec_from_json
from npformer.data.subwords import SubwordCodec
from npformer.errors import UserError
from npformer.pretrained import Card, names, read_pretrained, save_pretrained
from npformer.pretrained.loading import find_model
from npformer.storage.checkpoint import Checkpoint, load_checkpoint

EPILOG = """\
Examples: npformer pretrained en-de
          npformer pretrained --export runs/en-de --out en-de.safetensors --card card.json --casing raw.de
          npformer score --model en-de.safetensors test.en test.de --json > test.json
Then export once more with --scores test.json, so that the card contains the scores.

card.json is an object with the entries title, data, licence, training, command,
hours, machine and date (2026-01-31), and optionally example, beam and
length_penalty. Scores come only from npformer score, measured with these weights."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "name", nargs="?", help="the translator to show, or its file (default: all that ship)"
    )
    parser.add_argument("--markdown", action="store_true", help="print the card as a Markdown section")
    parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
    parser.add_argument("--export", metavar="RUN", help="export this run, or this checkpoint")
    parser.add_argument(
        "--last", action="store_true", help="export the last checkpoint of the run, not its best one"
    )
    parser.add_argument("--out", metavar="FILE", help="the file to write, NAME.safetensors")
    parser.add_argument("--card", metavar="FILE", help="the model card, a JSON file")
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
    if any((arguments.out, arguments.card, arguments.casing, arguments.scores, arguments.last)):
        raise UserError("--out, --card, --casing, --scores and --last need --export RUN: give the run")
    cards = {name: read_pretrained(name).card for name in ([arguments.name] if arguments.name else names())}
    if arguments.json:
        print(json.dumps([{"name": name} | card.to_dict() for name, card in cards.items()]))
    elif arguments.markdown:
        print("\n".join(card.section(Path(name).stem) for name, card in cards.items()), end="")
    elif cards:
        for name, card in cards.items():
            show(name, card)
    else:
        print("No translator ships with this copy of npformer: train one with npformer train.")
    return 0


def show(name: str, card: Card) -> None:
    """Print a card on the terminal."""
    out = console()
    out.print(f"[bold]{escape(name)}[/]  {escape(card.title)}")
    for what, text in card.lines():
        out.print(f"  {what:<11} {escape(text)}", soft_wrap=True)
    for each in card.scores:
        words = f"{each.bleu:.2f} on {each.reference}, beam {each.beam}: {each.signature}"
        out.print(f"  {'BLEU':<11} {escape(words)}", soft_wrap=True)


def export(arguments: Namespace) -> int:
    """Write the file. Return 0."""
    if arguments.name or not (arguments.out and arguments.card):
        raise UserError("--export RUN needs --out FILE and --card FILE, and takes no name")
    card = read_json(arguments.card)
    if isinstance(card, dict) and "scores" in card:
        raise UserError(f"{arguments.card} has scores: leave them out, and give measured ones with --scores")
    scores = [read_json(path) for path in arguments.scores]
    card = Card.from_dict(card | {"scores": scores} if isinstance(card, dict) else card)
    path = Path(arguments.out)
    checkpoint = load_checkpoint(find_model(arguments.export, last=arguments.last))
    if arguments.casing:
        checkpoint = with_casing(checkpoint, arguments.casing)
    save_pretrained(checkpoint, path, card)
    read_pretrained(path)  # a file that cannot be read is noticed at once
    print(f"wrote {path}: {path.stat().st_size / 1e6:.2f} MB, {len(card.scores)} scores")
    return 0


def with_casing(checkpoint: Checkpoint, path: str) -> Checkpoint:
    """Return the checkpoint with a target codec that writes capitals as the text in a file does.

    Raises:
        UserError: If the codec is one of whole words, or if the text has no capitals.
    """
    target = codec_from_json(checkpoint.target_codec)
    if not isinstance(target, SubwordCodec):
        raise UserError("--casing is for translators that write subwords, and this one writes whole words")
    target = dataclasses.replace(target, casing=Casing.from_lines(read_lines(path)))
    return dataclasses.replace(checkpoint, target_codec=target.to_json())


def read_json(path: str) -> Any:
    """Return the content of a JSON file.

    Raises:
        UserError: If the file cannot be read or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its name") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}): correct it") from None
