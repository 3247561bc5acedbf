"""npformer family: compare the members of the attention family, and check their gradients."""

import datetime
import json
import os
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.checking.cases import all_cases
from npformer.cli.options import COUNT, SEED, add, excludes, needs, only_if
from npformer.cli.output import console, print_data, versioned_rows
from npformer.cli.progress import training_progress
from npformer.data.corpus import builtin_corpus
from npformer.data.corpus.entries import table_rows
from npformer.data.dataset import builtin_dataset
from npformer.escaping import printable
from npformer.learn.console import plain_table, styled
from npformer.learn.experiments import family as experiment
from npformer.learn.experiments.family import FamilyRow, Trial
from npformer.models.transformer import TransformerConfig
from npformer.models.universal import UniversalEncoder
from npformer.nn import Recurrent
from npformer.nn.attention import (
    BasicSelfAttention,
    GlobalAttention,
    HardAttention,
    LatentAttention,
    LocalMonotonic,
    LocalPredictive,
    MultiHeadAttention,
    RelativeAttention,
    Similarity,
    SimilarityAttention,
)
from npformer.nn.module import Module
from npformer.storage.atomic import write_file

TABLE_FORMAT = 2  # of table.json and search.json
D, H, REACH = 64, 4, 10  # width, heads, and the reach of local attention and of relative distances
FOOT = (
    f"parameters: of one layer of width {D}, with {H} heads where there are heads. cost: multiplications for "
    "T queries and S keys of width D. error: the largest relative error of a gradient, by complex step in "
    "float64.\nnpformer family --measure trains the translators among them on one corpus and compares them."
)


def _general() -> Similarity:
    return Similarity("general", D, D)


def _heads(kind: str) -> Callable[[], Module]:
    return lambda: SimilarityAttention(D, H, similarity=kind)


def _universal() -> Module:
    config = TransformerConfig(d_model=D, d_ff=2 * D, n_heads=H, n_layers=4)
    return UniversalEncoder(config, halting=True)


# name | what it compares | cost | differentiable | chapter
_TABLE = """
    no attention: LSTM  | nothing              | T D² in turn | yes           | 17
    bare self-attention | x · x                | T² D         | yes           | 4
    heads               | q · k / √K           | T S D        | yes           | 7
    heads, general      | qᵀ W k               | T S D        | yes           | 4
    heads, concat       | w · [q; k]           | T S D        | yes           | 4
    heads, perceptron   | v · tanh(q W + k U)  | T S D H      | yes           | 4
    additive (Bahdanau) | v · tanh(h W + m U)  | T S D        | yes           | 17
    global (Luong)      | hᵀ W m               | T S D        | yes           | 17
    local-m (Luong)     | hᵀ W m, near t       | T S D        | yes           | 18
    local-p (Luong)     | hᵀ W m, near p(h)    | T S D        | between jumps | 18
    hard (Xu)           | hᵀ W m, one drawn    | T S D        | by sampling   | 19
    latent (Liu)        | u · e, then e V      | S² D         | yes           | 20
    relative (Shaw)     | q · (k + a)          | T S D        | yes           | 21
    Universal encoder   | q · k / √K           | n T² D       | between stops | 21
"""
# the name of each in npformer gradcheck, and a layer, in the same order
_LAYERS: dict[str, Callable[[], Module]] = {
    "Recurrent, lstm": lambda: Recurrent(D, D),
    "BasicSelfAttention": BasicSelfAttention,
    "multi-head self, separate": lambda: MultiHeadAttention(D, H),
    "SimilarityAttention self, general": _heads("general"),
    "SimilarityAttention self, concat": _heads("concat"),
    "SimilarityAttention self, perceptron": _heads("perceptron"),
    "GlobalAttention, perceptron": lambda: GlobalAttention(Similarity("perceptron", D, D)),
    "GlobalAttention, general": lambda: GlobalAttention(_general()),
    "LocalMonotonic": lambda: LocalMonotonic(_general(), reach=REACH),
    "LocalPredictive, general": lambda: LocalPredictive(_general(), reach=REACH),
    "HardAttention": lambda: HardAttention(_general()),
    "LatentAttention, rows, sum": lambda: LatentAttention(D, 20),
    "RelativeAttention, separate": lambda: RelativeAttention(D, H, max_distance=REACH),
    "UniversalEncoder, halting, post-norm": _universal,
}
MEMBERS = tuple(zip(table_rows(_TABLE), _LAYERS.items(), strict=True))

RULES = (
    only_if(
        "--steps --seed --out",
        lambda arguments: arguments.measure or arguments.search,
        "with --measure or --search",
        "give one of them as well, or leave it out",
    ),
    needs("--seeds", "--measure"),
    excludes("--measure", "--json --search", "it writes its numbers into table.json"),
    excludes("--search", "--json", "it writes its numbers into search.json"),
)
STEPS, SEARCH_STEPS = 3000, 1500  # the defaults of --measure and --search


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "--json", "print a list of JSON objects, one for each member")
    group = parser.add_argument_group("comparison")
    add(group, "--measure", "train the translators and compare them")
    add(
        group,
        "--search",
        "find the learning rate and the initialization of each translator on validation data",
    )
    add(
        group,
        "--steps",
        "the training steps of the Transformer; the others train for the same processor time "
        f"(default: {STEPS}). With --search: of each translator (default: {SEARCH_STEPS})",
        COUNT,
    )
    add(group, "--seeds", "the number of trainings of each translator", COUNT, default=3)
    add(group, "--seed", "the first seed of weights, order and dropout", SEED, default=0)
    add(group, "--out FOLDER", "the folder of the runs", default="runs/family")


def run(arguments: Namespace) -> int:
    """Print the table. Return 0, or 1 if a gradient is incorrect."""
    if arguments.measure or arguments.search:
        with threadpool_limits(1, user_api="blas"):  # one thread is fastest for matrices this small
            return measure(arguments) if arguments.measure else search(arguments)
    rows = members()
    if arguments.json:
        print_data(json.dumps(versioned_rows(rows), indent=1, ensure_ascii=False))
    else:
        show(rows)
    return 0 if all(row["ok"] for row in rows) else 1


def members() -> list[dict[str, Any]]:
    """Check the gradients of each member, and return the rows of the table."""
    cases = {case.name: case for case in all_cases()}
    rows = []
    for (name, compares, cost, differentiable, chapter), (case, make) in MEMBERS:
        report = cases[case].check()
        rows.append(
            {
                "name": name,
                "compares": compares,
                "cost": cost,
                "parameters": make().count_parameters(),
                "differentiable": differentiable,
                "error": float(np.max([row.error for row in report.rows])),
                "ok": report.ok,
                "chapter": int(chapter),
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    out = console()
    titles = ("member", "compares", "cost", "parameters", "differentiable", "error", "chapter")
    right = ("parameters", "error", "chapter")
    table = plain_table(*(f">{each}" if each in right else each for each in titles), wrapped=titles)
    for row in rows:
        error = f"{row['error']:.0e}" if row["ok"] else f"FAIL {row['error']:.0e}"
        kind = (row["name"], row["compares"], row["cost"], f"{row['parameters']:,}", row["differentiable"])
        table.add_row(*kind, error, str(row["chapter"]))
    out.print(table)
    out.print(f"\n{FOOT}")


def measure(arguments: Namespace) -> int:
    """Train, translate, time, and print the table. Return 0."""
    out, file = console(), Path(arguments.out, "table.json")
    dataset, test = builtin_dataset(), builtin_corpus().new_words
    steps = arguments.steps or STEPS
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    rows: list[FamilyRow] = []
    for system in experiment.plan(dataset, steps):
        out.print(styled((system.name, "bold")))
        with training_progress(out) as report:
            row = experiment.measure_system(system, dataset, test, file.parent, seeds=seeds, report=report)
        rows.append(row)
        # after each system, so that an interrupted comparison keeps what it has measured
        _write_rows(file, _when_and_where(steps, seeds), rows)
    _show_measured(rows)
    out.print(_when_and_where(steps, seeds))
    out.print(f"wrote {printable(file)}", soft_wrap=True)
    return 0


def search(arguments: Namespace) -> int:
    """Train every system with all settings of the grid, and print the best ones. Return 0."""
    out, file = console(), Path(arguments.out, "search.json")
    dataset, steps, seed = builtin_dataset(), arguments.steps or SEARCH_STEPS, arguments.seed
    trials: list[Trial] = []
    for name, model in experiment.SYSTEMS.items():
        for number, (rate, settings) in enumerate(experiment.grid(model)):
            out.print(styled((name, "bold"), (f"  learning rate {rate}{_listed(settings)}", "")))
            folder = file.parent / "search" / f"{model}-{number}"
            with training_progress(out) as report:
                trial = experiment.try_settings(
                    name, rate, settings, dataset, folder, steps=steps, seed=seed, report=report
                )
            trials.append(trial)
            _write_rows(file, _when_and_where(steps, [seed]), trials)
    table = plain_table("", "learning rate", "initialization", "validation loss")
    for best in experiment.best_trials(trials):
        chosen = _listed(best.settings).removeprefix(", ")
        table.add_row(best.name, f"{best.learning_rate}", chosen, f"{best.loss:.4f}")
    out.print(table)
    out.print(f"wrote {printable(file)}", soft_wrap=True)
    return 0


def _listed(settings: Mapping[str, float]) -> str:
    return "".join(f", {name} {value}" for name, value in settings.items())


def _write_rows(path: Path, made: str, rows: Sequence[FamilyRow] | Sequence[Trial]) -> None:
    """Write the rows of a table as a JSON file."""
    content = {"format": TABLE_FORMAT, "made": made, "rows": [row._asdict() for row in rows]}
    write_file(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _show_measured(rows: Sequence[FamilyRow]) -> None:
    """Print the measurements of each system, in two tables that fit a terminal of 80 columns."""
    out = console()
    lengths = [f"{a}-{b}" if b < 99 else f"{a}+" for a, b in experiment.LENGTHS]
    timed = [f"{n} words" for n in experiment.TIMED_LENGTHS]
    whole, parts = (
        plain_table("", *(f">{title}" for title in titles), wrapped=("", *titles))
        for titles in (["numbers", "steps", "seconds", "exact", "range"], [*lengths, *timed])
    )
    for row in rows:
        spread = f"{100 * min(row.exact):.1f}-{100 * max(row.exact):.1f}%"
        counts = [f"{row.parameters:,}", f"{row.steps:,}", f"{row.seconds:.0f}"]
        whole.add_row(row.name, *counts, f"{np.mean(row.exact):.1%}", spread)
        shares = [f"{share:.1%}" for share in row.by_length]
        parts.add_row(row.name, *shares, *(f"{ms:.0f} ms" for ms in row.step))
    out.print(whole)
    out.print(
        "numbers: parameters; seconds: processor time of a training; exact and range: the share of held-out "
        "sentences translated exactly, mean and range over the seeds\n"
    )
    out.print(parts)
    out.print(
        "the mean share by the words of English; at the right: a training step on 16 sentences of this length"
    )


def _when_and_where(steps: int, seeds: Sequence[int]) -> str:
    """Return a line with date, machine, the steps of the Transformer and the seeds of the trainings."""
    machine = f"{platform.machine()}, {os.cpu_count()} processors, one BLAS thread"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    many = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{today}; {machine}; {steps} steps of 64 sentences, {many}"
