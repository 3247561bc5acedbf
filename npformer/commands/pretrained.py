"""npformer pretrained: the translators that ship, their cards, and how a run becomes such a file."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from rich.markup import escape

from npformer.commands.trained import open_checkpoint
from npformer.data import read_lines
from npformer.data.casing import Casing
from npformer.data.subwords import SubwordCodec
from npformer.errors import UserError
from npformer.pretrained import Card, load, names, save_pretrained
from npformer.terminal import console
from npformer.training import Checkpoint

EPILOG = """\
Examples: npformer pretrained en-de
          npformer pretrained --export runs/en-de --out en-de.safetensors --card card.json --casing raw.de
          npformer score --pretrained en-de.safetensors test.en test.de --json > test.json
and the first again with --scores test.json, for the card to tell them.

card.json is an object of title, data, licence, recipe, command, hours, machine and date (2026-01-31) and, if
you like, example, beam and length_penalty. Scores come from npformer score alone, measured on the weights."""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("name", nargs="?", help="the translator to show, or its file (all that ship)")
    parser.add_argument("--markdown", action="store_true", help="its card as the README shows it")
    parser.add_argument("--json", action="store_true", help="a list of objects, for programs")
    parser.add_argument("--export", metavar="RUN", help="make a file from this run, or from a checkpoint")
    parser.add_argument("--last", action="store_true", help="from the run's last checkpoint, not its best")
    parser.add_argument("--out", metavar="FILE", help="where to, a file NAME.safetensors")
    parser.add_argument("--card", metavar="FILE", help="what to tell of the translator, as JSON")
    parser.add_argument(
        "--casing", metavar="FILE", help="text of the target language in its capitals, to learn them from"
    )
    parser.add_argument(
        "--scores", metavar="FILE", nargs="+", default=[], help="what npformer score --json printed"
    )


def run(arguments) -> int:
    """Returns 0."""
    if arguments.export is not None:
        return export(arguments)
    if any((arguments.out, arguments.card, arguments.casing, arguments.scores, arguments.last)):
        raise UserError("--out, --card, --casing, --scores and --last go with --export RUN: give the run")
    cards = {name: load(name).card for name in ([arguments.name] if arguments.name else names())}
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
    """A card on the terminal."""
    out = console()
    out.print(f"[bold]{escape(name)}[/]  {escape(card.title)}")
    for what, text in card.lines():
        out.print(f"  {what:<11} {escape(text)}", soft_wrap=True)
    for each in card.scores:
        words = f"{each.bleu:.2f} on {each.reference}, beam {each.beam}: {each.signature}"
        out.print(f"  {'BLEU':<11} {escape(words)}", soft_wrap=True)


def export(arguments) -> int:
    """Make the file. Returns 0."""
    if arguments.name or not (arguments.out and arguments.card):
        raise UserError("--export RUN goes with --out FILE and --card FILE, and without a name")
    card = read_json(arguments.card)
    if isinstance(card, dict) and "scores" in card:
        raise UserError(f"{arguments.card} has scores: measure them, and give them by --scores")
    scores = [read_json(path) for path in arguments.scores]
    card = Card.from_dict(card | {"scores": scores} if isinstance(card, dict) else card)
    path = Path(arguments.out)
    checkpoint = open_checkpoint(arguments.export, last=arguments.last)
    if arguments.casing:
        checkpoint = with_casing(checkpoint, arguments.casing)
    save_pretrained(checkpoint, path, card)
    load(str(path))  # what ships has been read once
    print(f"wrote {path}: {path.stat().st_size / 1e6:.2f} MB, {len(card.scores)} scores")
    return 0


def with_casing(checkpoint: Checkpoint, path: str) -> Checkpoint:
    """The checkpoint with a target codec that writes capitals as a text does.

    Errors: UserError for a codec of whole words, or a text without capitals.
    """
    if not isinstance(checkpoint.target, SubwordCodec):
        raise UserError("--casing is for translators that write subwords: this run's writes whole words")
    target = dataclasses.replace(checkpoint.target, casing=Casing.from_lines(read_lines(path)))
    return dataclasses.replace(checkpoint, target=target)


def read_json(path: str) -> Any:
    """What a JSON file holds. Errors: UserError where it cannot be read, or is none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its name") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}): write it anew") from None
