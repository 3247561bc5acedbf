"""The files that npformer pretrained --export reads: a model card, its scores and a text with capitals."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from npformer.cli.output import print_line
from npformer.data import read_lines
from npformer.data.casing import Casing
from npformer.data.codecs import Codec
from npformer.data.subwords import SubwordCodec
from npformer.errors import UserError, in_context
from npformer.pretrained import Card, MeasuredScore
from npformer.pretrained.template import TO_WRITE, card_template, require_filled_in
from npformer.storage.atomic import create_atomically, explain_os_errors
from npformer.storage.checkpoint import Checkpoint
from npformer.storage.json_files import read_json


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


def with_casing(target: Codec, path: str) -> SubwordCodec:
    """Return the target codec with the capitals of the text in a file.

    Raises:
        UserError: If the codec is one of whole words, or if the text has no capitals.
    """
    if not isinstance(target, SubwordCodec):
        raise UserError("--casing is for translators that write subwords, and this one writes whole words")
    return dataclasses.replace(target, casing=Casing.from_lines(read_lines(path)))


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
    return dataclasses.replace(card, scores=read_scores(scores))


def read_scores(files: Sequence[str]) -> tuple[MeasuredScore, ...]:
    """Return the scores in files with the output of `npformer score --json`.

    Raises:
        UserError: If a file cannot be read, or is not a score.
    """
    measured = []
    for file in files:
        content = read_json(Path(file), file, "correct it")
        with in_context(file):
            measured.append(MeasuredScore.from_dict(content))
    return tuple(measured)
