"""The options --model and --last of the commands that read a trained model, and the options of the search."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from npformer.cli.limits import require_beam
from npformer.cli.options import COUNT, EXPONENT, add_backend_argument
from npformer.errors import UserError
from npformer.generation.search import BEAM, LENGTH_PENALTY
from npformer.pretrained import LoadedTranslator, load, names

MODEL = (
    "a translator that ships (npformer pretrained lists them), the folder of a run, a checkpoint, "
    "or an exported file"
)


def add_model_arguments(parser: ArgumentParser, default: str = "the run trained last") -> None:
    """Add --model, which takes what `npformer.load` takes, and --last.

    Args:
        parser: The parser of the command.
        default: The model that the command reads without --model, for the help text.
    """
    parser.add_argument("--model", metavar="MODEL", help=f"{MODEL} (default: {default})")
    parser.add_argument(
        "--last", action="store_true", help="take the last checkpoint of the run, not its best one"
    )


def add_search_arguments(parser: ArgumentParser) -> None:
    """Add --beam, --length-penalty and --backend."""
    own = "; a translator that ships has its own"
    parser.add_argument(
        "--beam", type=COUNT, help=f"the number of hypotheses; 1 is greedy search (default: {BEAM}{own})"
    )
    parser.add_argument(
        "--length-penalty",
        type=EXPONENT,
        help=f"the exponent of the length penalty (default: {LENGTH_PENALTY}{own})",
    )
    add_backend_argument(parser)


def load_model(arguments: Namespace, backend: str = "numpy") -> LoadedTranslator:
    """Load the translator that --model and --last choose, or the run trained last.

    Raises:
        UserError: If there is no such model, or if its file is damaged.
    """
    return load(arguments.model or newest_run(), last=arguments.last, backend=backend)


def load_with_search(arguments: Namespace) -> tuple[LoadedTranslator, dict[str, Any]]:
    """Load the translator, and return it with the settings of the search.

    The settings are those of the command line, else those of the model card, else the paper's 4 and 0.6.
    """
    loaded = load_model(arguments, arguments.backend)
    settings = loaded.search_settings()
    given = {name: getattr(arguments, name) for name in settings}
    settings |= {name: value for name, value in given.items() if value is not None}
    if settings["beam"] == 1 and arguments.length_penalty is not None:
        raise UserError(
            "--length-penalty has no effect with a beam of 1, which is greedy search: leave it out, or give "
            "--beam 2 or more"
        )
    require_beam(loaded.model.config, settings["beam"])
    return loaded, settings


def newest_run() -> Path:
    """Return the run below runs/ or tour/ whose checkpoint was written last.

    Raises:
        UserError: If there is none.
    """
    checkpoints = [*Path("runs").glob("*/last.safetensors"), *Path("tour").glob("*/last.safetensors")]
    if not checkpoints:
        or_else = " or ".join(["give --model RUN", *(f"--model {name}" for name in names())])
        raise UserError(f"there is no run below runs/ or tour/: train one with npformer train, or {or_else}")
    return max(checkpoints, key=lambda path: path.stat().st_mtime).parent
