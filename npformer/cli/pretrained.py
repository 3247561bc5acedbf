"""npformer pretrained: show the model cards of the translators that ship, or export a run as such a file."""

import dataclasses
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from npformer.cli.card_files import begin_card, read_card, read_scores, with_casing
from npformer.cli.options import add, excludes, needs
from npformer.cli.output import console, print_data, print_line
from npformer.data.codecs import codecs_from_checkpoint
from npformer.errors import UserError, quantity
from npformer.escaping import printable
from npformer.interop import export_folder
from npformer.interop.families import FAMILIES
from npformer.learn.console import styled
from npformer.pretrained import Pretrained, load, names, read_pretrained, save_pretrained
from npformer.pretrained.loading import find_model, is_hugging_face_folder
from npformer.pretrained.store import is_pretrained_file, replace_card
from npformer.storage.checkpoint import load_checkpoint

EPILOG = """\
Examples: npformer pretrained en-de
          npformer pretrained --export runs/en-de
          npformer pretrained --export runs/en-de --out en-de.safetensors --casing raw.de
          npformer pretrained --export runs/gpt-shakespeare --layout llama --out my-llama
          npformer score --model en-de.safetensors test.en test.de --json > test.json
          npformer pretrained --export en-de.safetensors --out en-de.safetensors --scores test.json

An exported file has a model card. The second command writes the template of one to
runs/en-de/card.json, with everything that the run knows: languages, settings, hours.
Replace what begins with TO WRITE: the data, their licence, the command, the machine,
a sentence to try and published scores. The list "limits" is for what the model cannot
do: {"what": "questions", "source": a sentence, "translation": its translation}. Then
the third command exports the run. A card that exists is never overwritten.

Scores come only from npformer score, measured with the exported file. Export that
file once more with --scores test.json, so that its card contains them.

With --layout, any model becomes a new folder that the library transformers reads:
config.json and model.safetensors, without a card and without the tokenizer."""

RULES = (
    needs("--out --card --casing --scores --last", "--export"),
    needs("--casing --scores --layout", "--out"),
    excludes("--layout", "--card --casing --scores", "a Hugging Face folder has no model card"),
    excludes("--export", "name --markdown --json", "it shows no card"),
    excludes("--json", "--markdown", "these are two forms of the same"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "[name]", "the translator to show, or its file (default: all that ship)")
    add(parser, "--markdown", "print the card as a Markdown section")
    add(parser, "--json", "print a list of JSON objects")
    add(
        parser,
        "--export RUN",
        "export this run, checkpoint or exported file; without --out, write the template of its card",
    )
    add(parser, "--last", "export the last checkpoint of the run, not its best one")
    add(parser, "--out FILE", "the file to write, NAME.safetensors, or with --layout a new folder")
    add(
        parser,
        "--layout",
        "export a model of any kind as a Hugging Face folder of this family",
        FAMILIES.names(),
    )
    add(
        parser,
        "--card FILE",
        "the model card, a JSON file (default: card.json in the folder of the run, or the card of an "
        "exported file); if there is none yet, its template is written",
    )
    add(
        parser,
        "--casing FILE",
        "a text in the target language with capitals, from which their usual use is learned",
    )
    add(parser, "--scores FILE...", "files with the output of npformer score --json", default=[])


def run(arguments: Namespace) -> int:
    """Show the cards, or export. Return 0."""
    if arguments.layout is not None:
        return export_to_layout(arguments)
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
    card = found.card
    console().print(styled((printable(name), "bold"), f"  {printable(card.title)}"))
    lines = [("parameters", f"{found.model.count_parameters():,}"), *card.lines()]
    for what, text in lines:
        if what == "command":
            _print_command(what, text)
        else:
            _print_field(what, text)
    for score, command in zip(card.scores, card.commands(Path(name).stem), strict=True):
        invented = f", {score.invented_words} invented words" if score.invented_words else ""
        words = f"{score.score} on {score.reference}, {score.search}{invented}: {score.signature}"
        _print_field("BLEU", words)
        if score.by_length:
            lengths = [f"{part.lengths} words {part.bleu:.2f}" for part in score.by_length]
            print_line(f"{'':16}{', '.join(lengths)}", margin=16)
        _print_command("", f"  {command}")
    for limit in card.limits:
        _print_field("cannot", f"{limit.what}: {limit.source} → {limit.translation}")


def _print_field(name: str, text: str) -> None:
    """Print one line of a card."""
    print_line(f"  {name:<11} {text}", margin=14)


def _print_command(name: str, text: str) -> None:
    """Print one line of a card, whose command a line break would spoil."""
    console().print(f"  {name:<11} {printable(text)}", soft_wrap=True)


def export(arguments: Namespace) -> int:
    """Write the file of the translator, or first the template of its model card. Return 0."""
    name = arguments.export
    if is_hugging_face_folder(Path(name)):
        raise UserError(
            f"{name} is a Hugging Face folder, which has no model card: give --layout and --out to write it "
            "once more"
        )
    source = find_model(name, last=arguments.last)
    if is_pretrained_file(source):
        return export_again(arguments, source)
    checkpoint = load_checkpoint(source)
    place = Path(arguments.card) if arguments.card else source.parent / "card.json"
    if not place.exists():
        return begin_card(checkpoint, place, source.parent, exporting=arguments.out is not None)
    if not arguments.out:
        raise UserError(f"the card {place} exists and is left as it is: give --out FILE to export with it")
    card, path = read_card(str(place), arguments.scores), Path(arguments.out)
    if arguments.casing:
        target = with_casing(codecs_from_checkpoint(checkpoint).target, arguments.casing)
        checkpoint = dataclasses.replace(checkpoint, codecs=checkpoint.codecs | {"target": target.to_json()})
    save_pretrained(checkpoint, path, card)
    return check_exported(path)


def export_again(arguments: Namespace, source: Path) -> int:
    """Write an exported file once more, with another card or other capitals. Return 0."""
    if not (arguments.out and (arguments.card or arguments.scores or arguments.casing)):
        raise UserError(
            f"{arguments.export} is already an exported file: give --out FILE, and what is new with "
            "--card, --scores or --casing"
        )
    found, path = read_pretrained(source), Path(arguments.out)
    if arguments.card:
        card = read_card(arguments.card, arguments.scores)
    else:
        scores = read_scores(arguments.scores) or found.card.scores
        card = dataclasses.replace(found.card, scores=scores)
    target = with_casing(found.target, arguments.casing) if arguments.casing else None
    replace_card(source, path, card, target=target)
    return check_exported(path)


def check_exported(path: Path) -> int:
    """Read an exported file, so that a damaged one is noticed at once, and report it. Return 0."""
    card = read_pretrained(path).card
    print_line(f"wrote {path}: {path.stat().st_size / 1e6:.2f} MB, {quantity(len(card.scores), 'score')}")
    return 0


def export_to_layout(arguments: Namespace) -> int:
    """Write a Hugging Face folder. Return 0."""
    model = load(arguments.export, last=arguments.last).model
    folder = export_folder(model, arguments.out, arguments.layout)
    print_line(f"wrote {folder}: {arguments.layout}, {model.count_parameters():,} parameters")
    return 0
