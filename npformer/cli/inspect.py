"""npformer inspect: show the configuration, the layers, the parameters and the memory of a model.

The headers of the files of a Hugging Face folder say all this, and their numbers are not read.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite, prod
from pathlib import Path
from typing import Any

from npformer.cli.limits import size
from npformer.cli.load_model import ANY_MODEL
from npformer.cli.options import add
from npformer.cli.output import print_data, print_line, versioned_rows
from npformer.errors import UserError, quantity
from npformer.interop.folder import open_folder
from npformer.interop.settings_file import read_settings
from npformer.interop.tensor_files import stored_tensors
from npformer.models.registry import model_from_checkpoint
from npformer.pretrained import names
from npformer.pretrained.loading import find_model, is_hugging_face_folder
from npformer.pretrained.store import is_pretrained_file, read_pretrained
from npformer.storage.checkpoint import load_checkpoint
from npformer.validation import short

EPILOG = """\
Examples: npformer inspect en-de
          npformer inspect runs/gpt-shakespeare --last
          npformer inspect gpt2

The exit status is 1 for a Hugging Face folder that npformer cannot load. The
output then says why."""

Shapes = Mapping[str, tuple[int, ...]]  # the shape of each parameter, by its dotted name


@dataclass(frozen=True)
class Description:
    """The description of a model in its files.

    Attributes:
        kind: What the model is, such as "GPT (gpt2)".
        settings: Its settings.
        shapes: The shape of each parameter, by its dotted name.
        stored: The bytes in the files by dtype, for a Hugging Face folder.
        problem: The sentence that says why npformer cannot load it, or "".
    """

    kind: str
    settings: Mapping[str, Any]
    shapes: Shapes
    stored: dict[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def n_parameters(self) -> int:
        """The number of entries of all parameters together."""
        return sum(map(prod, self.shapes.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the description as a dict of values that JSON has."""
        return {
            "kind": self.kind,
            "supported": not self.problem,
            "problem": self.problem,
            "parameters": self.n_parameters,
            "stored": self.stored,
            "settings": {name: _json_value(value) for name, value in self.settings.items()},
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
        }


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "model", ANY_MODEL)
    add(parser, "--last", "take the last checkpoint of the run, not its best one")
    add(parser, "--json", "print a list with one JSON object")


def run(arguments: Namespace) -> int:
    """Print what a model is made of. Return 0, or 1 for a folder that npformer cannot load."""
    name = arguments.model
    if not arguments.last and name not in names() and is_hugging_face_folder(Path(name)):
        found = describe_folder(Path(name))
    else:
        found = describe_file(find_model(name, last=arguments.last))
    if arguments.json:
        print_data(json.dumps(versioned_rows([{"name": name, **found.to_dict()}]), indent=1))
    else:
        for line in lines_of(found):
            print_line(line, margin=13)
    return 1 if found.problem else 0


def describe_file(path: Path) -> Description:
    """Return the description of a checkpoint, or of an exported file.

    Raises:
        UserError: If the file cannot be read.
    """
    if is_pretrained_file(path):
        model = read_pretrained(path).model
    else:
        model = model_from_checkpoint(load_checkpoint(path))
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    return Description(type(model).__name__, model.config.to_dict(), shapes)


def describe_folder(folder: Path) -> Description:
    """Return the description of a Hugging Face folder from its config.json and the headers of its files.

    Raises:
        UserError: If one of these files is missing or damaged. A model that npformer does not support has a
            description, with the sentence that says why.
    """
    tensors, settings = stored_tensors(folder), read_settings(folder)
    stored: dict[str, int] = {}
    for tensor in tensors.values():
        stored[tensor.dtype] = stored.get(tensor.dtype, 0) + tensor.size
    try:
        content = open_folder(folder)
    except UserError as error:
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        return Description("unknown", settings.values, shapes, stored, str(error))
    kind = f"{content.family.model.__name__} ({content.family.name})"
    return Description(kind, content.config.to_dict(), {row.ours: row.shape for row in content.rows}, stored)


def lines_of(found: Description) -> list[str]:
    """Return the lines of a description."""
    count = found.n_parameters
    rows = [
        ("model", found.kind),
        ("supported", f"no: {found.problem}" if found.problem else "yes"),
        ("parameters", f"{count:,} in {quantity(len(found.shapes), 'tensor')}"),
        *((f"stored {dtype}", size(n_bytes)) for dtype, n_bytes in found.stored.items()),
        ("memory", f"{size(4 * count)} in float32, {size(8 * count)} in float64; the same for gradients"),
    ]
    lines = [f"{name:<12} {text}" for name, text in rows]
    lines += ["configuration", *(f"  {name:<24} {short(value)}" for name, value in found.settings.items())]
    # the names in a folder that is not supported may be anything, and no tree is made of them
    return lines if found.problem else [*lines, "layers", *(f"  {line}" for line in tree(found.shapes))]


def tree(shapes: Shapes) -> list[str]:
    """Return the lines of the tree of parameters. Neighbouring layers that are equal are shown once."""
    subtrees = []
    for name, below in groupby(shapes, key=lambda each: each.partition(".")[0]):
        inside = {each.removeprefix(f"{name}."): shapes[each] for each in below}
        subtrees.append((name, [f" {shapes[name]}"] if name in shapes else ["", *tree(inside)]))
    lines = []
    for (first, *others), equal in groupby(subtrees, key=lambda pair: pair[1]):
        labels = [name for name, _ in equal]
        if not others:  # parameters, of which each has its line
            lines += [f"{label}{first}" for label in labels]
            continue
        label = labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"
        lines += [label, *(f"  {line}" for line in others)]
    return lines


def _json_value(value: Any) -> Any:
    """Return a value as it is, or as text if JSON has no such number."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value
