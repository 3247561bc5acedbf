"""Which trained model a command uses: a run, one of its checkpoints, or a translator that ships."""

from pathlib import Path

from npformer.backend import choose_backend
from npformer.decoding import Translator
from npformer.errors import UserError
from npformer.pretrained import Card, load, names
from npformer.training import Checkpoint, load_checkpoint

LENGTH_PENALTY = 0.6  # the paper's


def add_choice_arguments(parser, what: str) -> None:
    """What says which trained model."""
    parser.add_argument(
        "--run", help=f"the run to {what}, or a checkpoint in it (default: the one trained last)"
    )
    parser.add_argument("--last", action="store_true", help="its last checkpoint, not its best")
    parser.add_argument(
        "--pretrained",
        metavar="NAME",
        help="a translator that ships with npformer (npformer pretrained lists them), "
        "or a file that npformer pretrained --export wrote",
    )


def add_search_arguments(parser, *, beam: int) -> None:
    """How to translate. beam: where the user gives none, and the translator has no wish of its own."""
    own = "; a pretrained translator has its own"
    parser.add_argument("--beam", type=int, help=f"hypotheses kept; 1 is greedy search ({beam}{own})")
    parser.add_argument(
        "--length-penalty", type=float, help=f"exponent of the length norm ({LENGTH_PENALTY}{own})"
    )
    parser.add_argument("--backend", choices=("numpy", "cupy", "auto"), default="auto", help="(auto)")


def chosen_search(arguments, *, beam: int) -> tuple[Translator, dict]:
    """The translator that the arguments choose, and beam and length penalty: those given, or its card's."""
    translator, card = chosen_translator(arguments, arguments.backend)
    settings = {"beam": card.beam, "length_penalty": card.length_penalty} if card else {}
    settings = {"beam": beam, "length_penalty": LENGTH_PENALTY} | settings
    given = {name: getattr(arguments, name) for name in settings}
    return translator, settings | {name: value for name, value in given.items() if value is not None}


def chosen_translator(arguments, backend: str) -> tuple[Translator, Card | None]:
    """The translator that the arguments choose, with its card if it is a pretrained one.

    Errors: UserError for an unknown name, a damaged file, or where a run is asked for as well.
    """
    if arguments.pretrained is None:
        return open_translator(arguments.run, last=arguments.last, backend=backend), None
    if arguments.run is not None or arguments.last:
        raise UserError("--pretrained names a translator, and --run and --last another: give one of them")
    model, source, target, card = load(arguments.pretrained)
    return Translator(model.to(choose_backend(backend)), source, target), card


def open_translator(run: str | None, *, last: bool = False, backend: str = "auto") -> Translator:
    """The translator of a run, or of the run trained last.

    Errors: UserError where there is no run, or its checkpoint is broken.
    """
    checkpoint = open_checkpoint(run, last=last)
    return Translator(checkpoint.model(choose_backend(backend)), checkpoint.source, checkpoint.target)


def open_checkpoint(run: str | None, *, last: bool = False) -> Checkpoint:
    """The best checkpoint of a run, or the last; or the one in a file, if `run` is one.

    Errors: UserError where there is no run, or its checkpoint is broken.
    """
    folder = Path(run) if run else newest_run()
    if folder.is_file():
        return load_checkpoint(folder)
    path = folder / ("last.safetensors" if last else "best.safetensors")
    if not folder.is_dir():
        raise UserError(f"there is no run {folder}: train one with npformer train --run {folder}")
    if not path.exists() and not last:
        path = folder / "last.safetensors"  # a run stopped before its first validation
    return load_checkpoint(path)


def newest_run() -> Path:
    """The run whose checkpoint was written last, among those below runs/ and tour/."""
    checkpoints = [*Path("runs").glob("*/last.safetensors"), *Path("tour").glob("*/last.safetensors")]
    if not checkpoints:
        or_else = " or ".join(["give --run", *(f"--pretrained {name}" for name in names())])
        raise UserError(f"there is no run below runs/ or tour/: train one with npformer train, or {or_else}")
    return max(checkpoints, key=lambda path: path.stat().st_mtime).parent
