"""The options --model and --last of the commands that read a trained model, and the options of the search."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from npformer.cli.limits import require_beam
from npformer.cli.options import COUNT, EXPONENT, add, add_backend_argument
from npformer.cli.output import note
from npformer.errors import UserError
from npformer.generation.search import BEAM, LENGTH_PENALTY
from npformer.pretrained import Translator, load, names
from npformer.pretrained.images import ImageModel
from npformer.pretrained.loaded import AnyLoaded, Loaded
from npformer.pretrained.loading import load_as, remedy_for

MODEL = (
    "a translator that ships (npformer pretrained lists them), the folder of a run, a checkpoint, "
    "an exported file, or a Hugging Face folder"
)

NEWEST_RUN = "the run trained last"

ANY_MODEL = f"{MODEL}, of a translator, a language model or a masked language model"


def add_model_arguments(
    parser: ArgumentParser, default: str = f"{NEWEST_RUN}, or en-de", *, models: str = MODEL
) -> None:
    """Add --model, which takes what `npformer.load` takes, and --last.

    Args:
        parser: The parser of the command.
        default: The model that the command reads without --model, for the help text.
        models: The models that the command can read, for the help text.
    """
    add(parser, "--model MODEL", f"{models} (default: {default})")
    add(parser, "--last", "take the last checkpoint of the run, not its best one")


def add_search_arguments(parser: ArgumentParser) -> None:
    """Add --beam, --length-penalty and --backend."""
    own = "; a translator that ships or comes from Hugging Face has its own"
    add(parser, "--beam", f"the number of hypotheses; 1 is greedy search (default: {BEAM}{own})", COUNT)
    add(
        parser,
        "--length-penalty",
        f"the exponent of the length penalty (default: {LENGTH_PENALTY}{own})",
        EXPONENT,
    )
    add_backend_argument(parser)


def load_any(arguments: Namespace, backend: str = "numpy") -> Loaded:
    """Load the model that --model and --last choose, of any kind, or that of `newest_run`.

    Raises:
        UserError: If there is no such model, or if its file is damaged.
    """
    loaded: Loaded = _load(load, arguments, backend)
    return loaded


def load_kind(wanted: type[AnyLoaded], arguments: Namespace, backend: str = "numpy") -> AnyLoaded:
    """Load the model of one kind that --model and --last choose, or that of `newest_run`.

    Args:
        wanted: The class of the kind.
        arguments: The arguments of the command.
        backend: "numpy", "cupy", or "auto" for CuPy where there is a GPU.

    Raises:
        UserError: If there is no such model, if it is of another kind, or if its file is damaged.
    """
    loaded: AnyLoaded = _load(partial(load_as, wanted), arguments, backend, remedy_for(wanted))
    return loaded


def _load(function: Callable[..., Any], arguments: Namespace, backend: str, remedy: str = "") -> Any:
    """Load a model by a function, with a progress bar. The remedy is for the message if there is no run."""
    from npformer.cli.loading_bar import loading_bar  # rich takes 50 ms to load, and --help does without

    name = arguments.model or newest_run(remedy)
    with loading_bar() as progress:
        loaded = function(name, last=arguments.last, backend=backend, progress=progress)
    if isinstance(loaded, ImageModel):
        raise UserError(
            f"{loaded.name} reads images, and the commands read texts: use npformer.load(FOLDER) in Python"
        )
    return loaded


def load_with_search(arguments: Namespace) -> tuple[Translator, dict[str, Any]]:
    """Load the translator, and return it with the settings of the search.

    The beam and the length penalty of the command line take the place of the model's own.
    """
    loaded = load_kind(Translator, arguments, arguments.backend)
    settings = loaded.search_settings()
    given = {"beam": arguments.beam, "length_penalty": arguments.length_penalty}
    settings |= {name: value for name, value in given.items() if value is not None}
    if settings["beam"] == 1 and arguments.length_penalty is not None:
        raise UserError(
            "--length-penalty has no effect with a beam of 1, which is greedy search: leave it out, or give "
            "--beam 2 or more"
        )
    require_beam(loaded.model.config, settings["beam"])
    return loaded, settings


def note_unknown_words(loaded: Loaded, text: str, where: str = "") -> None:
    """Print a note that names the words of a text that the model does not know, if there are any.

    Args:
        loaded: The model.
        text: The text.
        where: The beginning of the note, such as "line 3: ".
    """
    unknown = loaded.unknown_words(text)
    if unknown:
        note(f"{where}the model does not know {', '.join(map(repr, unknown))} and reads <UNK> instead")


def newest_run(remedy: str = "") -> Path | str:
    """Return the run below runs/ or tour/ whose checkpoint was written last, or a translator that ships.

    Args:
        remedy: What to do if there is no run and a translator does not help, for the message.

    Raises:
        UserError: If there is none.
    """
    checkpoints = [*Path("runs").glob("*/last.safetensors"), *Path("tour").glob("*/last.safetensors")]
    if not checkpoints:
        if not remedy and names():
            note(f"there is no run below runs/ or tour/, so this is {names()[0]}, a translator that ships")
            return names()[0]
        remedy = remedy or "train one with npformer train, or give --model RUN"
        raise UserError(f"there is no run below runs/ or tour/: {remedy}")
    return max(checkpoints, key=lambda path: path.stat().st_mtime).parent
