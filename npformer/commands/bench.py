"""npformer bench: how fast a training step is, and where its time and memory go."""

import json
import os
from pathlib import Path
from typing import Any

from npformer.atomic import write_atomically
from npformer.backend import choose_backend
from npformer.bench.compare import require_torch
from npformer.bench.machine import describe, is_busy
from npformer.bench.setups import SETUPS, choose_setups
from npformer.commands import bench_measure, bench_tables
from npformer.errors import UserError
from npformer.settings import require_count
from npformer.terminal import note

PNG = "bench-curves.png"
EPILOG = """\
Examples: npformer bench --only tiny small
          npformer bench --against torch --json bench.json
          npformer bench --profile --only tiny
          npformer bench --curves curves.png"""


def add_arguments(parser) -> None:
    """The arguments of the command."""
    import argparse

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    names = ", ".join(SETUPS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"some of {names} (all; --profile: tiny)")
    parser.add_argument("--against", choices=("torch",), help="PyTorch's step as well, taking turns")
    parser.add_argument("--repeats", type=int, default=5, help="how many turns each takes (5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a turn is, at least (1)")
    parser.add_argument(
        "--workers", type=int, default=2, help="threads, each with its share of the batch (2)"
    )
    parser.add_argument(
        "--backend", choices=("numpy", "cupy", "auto"), default="numpy", help="where to compute (numpy)"
    )
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="a list of objects, into FILE or printed"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--profile", action="store_true", help="the step's time by component, on one core")
    other.add_argument(
        "--curves",
        nargs="?",
        const=PNG,
        metavar="PNG",
        help=f"time and memory against length and batch, on one core, drawn into PNG ({PNG})",
    )
    other.add_argument(
        "--decoding", action="store_true", help="sentences a second, greedy and by beam search"
    )


def run(arguments) -> int:
    """Returns 0."""
    setups = check(arguments)
    about = describe()  # first of all, while the machine's load is not our own
    rough = is_busy(about["machine"])
    if arguments.profile:
        rows, show = bench_measure.profile_rows(arguments, setups), bench_tables.show_profile
    elif arguments.curves:
        rows, show = bench_measure.curve_rows(arguments), bench_tables.show_curves
    elif arguments.decoding:
        rows, show = bench_measure.decoding_rows(arguments), bench_tables.show_decoding
    else:
        rows, show = bench_measure.step_rows(arguments, setups), bench_tables.show_steps
    if arguments.json != "-":
        show(rows)
        bench_tables.show_about(about)
    if rough:  # its threads wait for each other more often
        note("other programs use this machine: these figures are rough, and PyTorch's suffer most")
    if arguments.json:
        write_json([row | about | {"rough": rough} for row in rows], arguments.json)
    return 0


def check(arguments) -> list:
    """The setups that are asked for. Errors: UserError for what cannot be, before anything is measured."""
    for name in ("repeats", "workers"):
        require_count(f"--{name}", getattr(arguments, name))
    if not arguments.seconds > 0:
        raise UserError(f"--seconds is {arguments.seconds:g}: it must be more than 0")
    setups = choose_setups(arguments.only)
    for setup in setups:
        if arguments.workers > setup.sentences:
            raise UserError(
                f"--workers is {arguments.workers}, and the batch of {setup.name} has {setup.sentences} "
                "sentences: each worker needs one"
            )
    arguments.backend = choose_backend(arguments.backend)
    if arguments.against:
        if arguments.profile or arguments.curves or arguments.decoding:
            raise UserError("--against torch goes with no --profile, --curves or --decoding: leave one out")
        require_torch()
    if (arguments.curves or arguments.decoding) and (arguments.only or arguments.backend != "numpy"):
        raise UserError(
            "--curves and --decoding have models of their own, on NumPy: leave out --only, --backend"
        )
    if arguments.curves and not arguments.curves.endswith((".png", ".svg")):
        raise UserError(f"--curves {arguments.curves}: end the picture's name in .png or .svg")
    for path in (arguments.json, arguments.curves):
        if path and path != "-":
            check_writable(Path(path))
    return setups


def check_writable(path: Path) -> None:
    """Errors: UserError where the file could not be written, when minutes of measuring are over."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UserError(f"cannot write {path}: give a file in a folder that exists and may be written to")


def write_json(rows: list[dict[str, Any]], file: str) -> None:
    """Into the file, whole or not at all, or on the screen. Errors: UserError where it cannot be written."""
    text = json.dumps(rows, indent=1, ensure_ascii=False)
    if file == "-":
        print(text)
        return
    try:
        write_atomically(Path(file), f"{text}\n".encode())
    except OSError as error:
        raise UserError(f"cannot write {file} ({error.strerror}): give another file") from None
