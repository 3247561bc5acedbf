"""npformer family --measure: recurrent translators and the Transformer on one corpus, at one size."""

import datetime
import json
import os
import platform
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

from npformer.data import Batch
from npformer.data.corpus import Pair, builtin_corpus
from npformer.data.datasets import Dataset, builtin_dataset
from npformer.decoding import Translator
from npformer.errors import UserError
from npformer.models import build, preset
from npformer.terminal import console, training_progress
from npformer.training import TrainingConfig, load_checkpoint, loss_and_gradients, train

# what the table calls it, and its preset: all of about as many parameters
SYSTEMS = {
    "LSTM, no attention": "rnn",
    "additive (Bahdanau)": "rnn-additive",
    "global (Luong)": "rnn-global",
    "global, input feeding": "rnn-global-feeding",
    "local-m": "rnn-local-m",
    "local-p": "rnn-local-p",
    "Transformer": "small",
}
LENGTHS = ((1, 6), (7, 9), (10, 12), (13, 99))  # words of the English sentence, from and to
WORDS = (8, 16, 32, 64)  # lengths at which a training step is timed, in a batch of 16
REPEATS = 3


class Row(NamedTuple):
    """What was measured of one system."""

    name: str
    parameters: int
    epoch: float  # seconds of the processor, in training: others on the machine do not count
    exact: float  # share of the held-out sentences translated exactly
    by_length: tuple[float, ...]  # the same, for each of LENGTHS
    step: tuple[float, ...]  # milliseconds of a training step, for each of WORDS


def measure(arguments) -> int:
    """Train, translate, time, and print the table. Returns 0."""
    if arguments.steps < 1:
        raise UserError(f"--steps is {arguments.steps}: it must be 1 or more")
    out, folder = console(), Path(arguments.out)
    dataset, test = builtin_dataset(), builtin_corpus().test
    rows = []
    with threadpool_limits(1, user_api="blas"):  # matrices this small are quickest on one thread
        for name, model in SYSTEMS.items():
            out.print(f"[bold]{name}[/]")
            rows.append(measure_one(out, name, model, dataset, test, folder / model, arguments))
    show(out, rows, arguments)
    text = {"made": when_and_where(arguments), "rows": [row._asdict() for row in rows]}
    (folder / "table.json").write_text(json.dumps(text, indent=1, ensure_ascii=False), encoding="utf-8")
    out.print(f"wrote {folder / 'table.json'}")
    return 0


def measure_one(
    out, name: str, model: str, dataset: Dataset, test: Sequence[Pair], folder: Path, arguments
) -> Row:
    """One system: trained anew in its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    config = preset(model, **dataset.sizes)
    steps = arguments.steps
    training = TrainingConfig.preset(
        "small", steps=steps, warmup_steps=max(1, steps // 10), seed=arguments.seed, validate_every=steps
    )
    began = time.process_time()
    with training_progress(out) as report:
        train(folder, dataset, config, training, threads=1, report=report)
    seconds = time.process_time() - began
    checkpoint = load_checkpoint(folder / "last.safetensors")
    made = checkpoint.model()
    translator = Translator(made, checkpoint.source, checkpoint.target)
    answers = translator.translate([pair.english for pair in test])
    right = np.array([a == pair.french for a, pair in zip(answers, test, strict=True)])  # (N,)
    words = np.array([len(pair.english.split()) for pair in test])  # (N,)
    assert training.batch_size is not None  # the preset's
    return Row(
        name=name,
        parameters=made.count_parameters(),
        epoch=seconds / steps * len(dataset.train) / training.batch_size,
        exact=float(right.mean()),
        by_length=tuple(float(right[(words >= a) & (words <= b)].mean()) for a, b in LENGTHS),
        step=tuple(step_time(model, dataset, length) for length in WORDS),
    )


def step_time(model: str, dataset: Dataset, length: int) -> float:
    """Milliseconds of forward and backward on 16 sentences of this many tokens: the least of three."""
    config = preset(model, **(dataset.sizes | {"max_length": length + 1}))
    made = build(config, rng=np.random.default_rng(0))
    rng = np.random.default_rng(length)
    ids = [rng.integers(4, n, (16, length)) for n in dataset.sizes.values()]
    batch = Batch(ids[0], ids[1], ids[1])
    seconds = []
    for _ in range(REPEATS + 1):  # the first one warms up
        began = time.process_time()
        loss_and_gradients(made, [batch], [np.random.default_rng(1)])
        seconds.append(time.process_time() - began)
    return 1000 * min(seconds[1:])


def show(out, rows: Sequence[Row], arguments) -> None:
    """The table, and how it was made."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    titles = ["numbers", "s an epoch", "exact", *(f"{a}-{b}" if b < 99 else f"{a}+" for a, b in LENGTHS)]
    for title in [*titles, *(f"{n} words" for n in WORDS)]:
        table.add_column(title, justify="right")
    for row in rows:
        shares = [f"{share:.1%}" for share in (row.exact, *row.by_length)]
        times = [f"{ms:.0f} ms" for ms in row.step]
        table.add_row(row.name, f"{row.parameters:,}", f"{row.epoch:.0f}", *shares, *times)
    out.print(table)
    out.print(
        "numbers: parameters; s an epoch: of one processor; exact: held-out sentences translated exactly, "
        "all and by words of English; at the right: a training step on 16 sentences of so many words\n"
        f"{when_and_where(arguments)}"
    )


def when_and_where(arguments) -> str:
    """Date, machine and settings, in a line."""
    machine = f"{platform.machine()}, {os.cpu_count()} processors, one BLAS thread"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return f"{today}; {machine}; {arguments.steps} steps of 64 sentences, seed {arguments.seed}"
