"""npformer family: the members of the attention family side by side, their gradients checked now."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from npformer.attention import (
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
from npformer.gradcheck.cases import all_cases
from npformer.layers import Recurrent
from npformer.module import Module
from npformer.terminal import console
from npformer.transformer import TransformerConfig, UniversalEncoder

D, H, REACH = 64, 4, 10  # width, heads, and how far the local ones and distances reach, in the table
FOOT = f"""\
parameters: of one layer at width {D}, {H} heads where there are heads. cost: products for T queries and S
keys of width D. error: the worst relative error of any tensor, by complex step in float64, measured now.
npformer family --measure trains the translators among them on one corpus and compares them."""


@dataclass(frozen=True)
class Member:
    """One member of the family; case is what `npformer gradcheck` calls it."""

    name: str
    compares: str
    cost: str
    differentiable: str
    lesson: int
    case: str
    make: Callable[[], Module]


def _similarity(kind: str) -> Similarity:
    return Similarity(kind, D, D)


def _heads(kind: str) -> Callable[[], Module]:
    return lambda: SimilarityAttention(D, H, similarity=kind)


MEMBERS = (
    Member(
        "no attention: LSTM", "nothing", "T D² in turn", "yes", 17, "Recurrent, lstm", lambda: Recurrent(D, D)
    ),
    Member("bare self-attention", "x · x", "T² D", "yes", 4, "BasicSelfAttention", BasicSelfAttention),
    Member(
        "heads",
        "q · k / √K",
        "T S D",
        "yes",
        7,
        "multi-head self, separate",
        lambda: MultiHeadAttention(D, H),
    ),
    Member(
        "heads, general", "qᵀ W k", "T S D", "yes", 4, "SimilarityAttention self, general", _heads("general")
    ),
    Member(
        "heads, concat", "w · [q; k]", "T S D", "yes", 4, "SimilarityAttention self, concat", _heads("concat")
    ),
    Member(
        "heads, perceptron",
        "v · tanh(q W + k U)",
        "T S D H",
        "yes",
        4,
        "SimilarityAttention self, perceptron",
        _heads("perceptron"),
    ),
    Member(
        "additive (Bahdanau)",
        "v · tanh(h W + m U)",
        "T S D",
        "yes",
        17,
        "GlobalAttention, perceptron",
        lambda: GlobalAttention(_similarity("perceptron")),
    ),
    Member(
        "global (Luong)",
        "hᵀ W m",
        "T S D",
        "yes",
        17,
        "GlobalAttention, general",
        lambda: GlobalAttention(_similarity("general")),
    ),
    Member(
        "local-m (Luong)",
        "hᵀ W m, near t",
        "T S D",
        "yes",
        18,
        "LocalMonotonic",
        lambda: LocalMonotonic(_similarity("general"), reach=REACH),
    ),
    Member(
        "local-p (Luong)",
        "hᵀ W m, near p(h)",
        "T S D",
        "between jumps",
        18,
        "LocalPredictive, general",
        lambda: LocalPredictive(_similarity("general"), reach=REACH),
    ),
    Member(
        "hard (Xu)",
        "hᵀ W m, one drawn",
        "T S D",
        "by sampling",
        19,
        "HardAttention",
        lambda: HardAttention(_similarity("general")),
    ),
    Member(
        "latent (Liu)",
        "u · e, then e V",
        "S² D",
        "yes",
        20,
        "LatentAttention, rows, sum",
        lambda: LatentAttention(D, 20),
    ),
    Member(
        "relative (Shaw)",
        "q · (k + a)",
        "T S D",
        "yes",
        21,
        "RelativeAttention, separate",
        lambda: RelativeAttention(D, H, max_distance=REACH),
    ),
    Member(
        "Universal encoder",
        "q · k / √K",
        "n T² D",
        "between stops",
        21,
        "UniversalEncoder, halting, post-norm",
        lambda: UniversalEncoder(_universal(), halting=True),
    ),
)


def _universal() -> TransformerConfig:
    return TransformerConfig(d_model=D, d_ff=2 * D, n_heads=H, n_layers=4)


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.add_argument("--json", action="store_true", help="print a list of objects, one a member")
    group = parser.add_argument_group("comparison")
    group.add_argument("--measure", action="store_true", help="train the translators, and compare them")
    group.add_argument("--steps", type=int, default=1000, help="of training, for each (1000)")
    group.add_argument("--seed", type=int, default=0, help="of weights, order and dropout (0)")
    group.add_argument("--out", default="runs/family", help="the folder for the runs (runs/family)")


def run(arguments) -> int:
    """Returns 0, or 1 where a gradient is wrong."""
    if arguments.measure:
        from npformer.commands.family_measure import measure

        return measure(arguments)
    rows = members()
    if arguments.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        show(rows)
    return 0 if all(row["ok"] for row in rows) else 1


def members() -> list[dict[str, Any]]:
    """What the table says of each member, with its gradients checked."""
    cases = {case.name: case for case in all_cases()}
    rows = []
    for member in MEMBERS:
        report = cases[member.case].check()
        rows.append(
            {
                "name": member.name,
                "compares": member.compares,
                "cost": member.cost,
                "parameters": member.make().count_parameters(),
                "differentiable": member.differentiable,
                "error": float(np.max([row.error for row in report.rows])),
                "ok": report.ok,
                "lesson": member.lesson,
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """The table on the terminal."""
    out, table = console(), Table(box=None, pad_edge=False, header_style="bold")
    right = ("parameters", "error", "lesson")
    for title in ("member", "compares", "cost", "parameters", "differentiable", "error", "lesson"):
        table.add_column(title, justify="right" if title in right else "left", no_wrap=True)
    for row in rows:
        error = f"{row['error']:.0e}" if row["ok"] else f"WRONG {row['error']:.0e}"
        parameters, lesson = f"{row['parameters']:,}", str(row["lesson"])
        table.add_row(
            row["name"],
            escape(row["compares"]),
            row["cost"],
            parameters,
            row["differentiable"],
            error,
            lesson,
        )
    out.print(table)
    out.print(f"\n{FOOT}", markup=False)
