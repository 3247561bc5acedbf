"""Count what one training step of a small model enters: files of the package, Python calls, their depth.

    python tests/trace_step.py [llama gpt transformer] [--files] [--functions] [--plain]

--files and --functions list the calls of each file and of the functions that are called most. --plain runs
the plain pairs instead of the kernels. From Python 3.12 on, list comprehensions are no calls.
"""

import argparse
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

import npformer
from npformer.data.loader import Batch
from npformer.data.text import TextBatch
from npformer.kernels import plain_pairs
from npformer.models.gpt import GPTConfig
from npformer.models.registry import build
from npformer.models.transformer import TransformerConfig
from npformer.training.optimizer import Adam
from npformer.training.step import make_step

PACKAGE = f"{Path(npformer.__file__).parent}/"
SIZES = {"d_model": 8, "n_layers": 1, "n_heads": 2}
VOCABULARY = 65


class Trace(NamedTuple):
    """The calls of one step inside the package."""

    functions: Counter  # (file, function) -> calls
    depth: int

    @property
    def calls(self):
        return self.functions.total()

    @property
    def files(self):
        counts = Counter()
        for (file, _), calls in self.functions.items():
            counts[file] += calls
        return counts


def make_model(name):
    """Return a model with one layer."""
    if name == "gpt":
        config = GPTConfig.preset("small", **SIZES, context=16)
    elif name == "llama":
        config = GPTConfig.preset("gpt-shakespeare", **SIZES, d_ff=16, context=16, dropout=0.1)
    else:
        vocabularies = {"source_vocab": VOCABULARY, "target_vocab": VOCABULARY}
        config = TransformerConfig(**SIZES, **vocabularies, d_ff=16, max_length=16)
    return build(config, rng=np.random.default_rng(0))


def make_batch(name):
    """Return four sentences, two of them with padding if the model is a translator."""
    draw = np.random.default_rng(1)
    if name != "transformer":
        ids = draw.integers(0, VOCABULARY, (4, 13))
        return TextBatch(ids[:, :-1], ids[:, 1:])
    source, target = draw.integers(3, VOCABULARY, (4, 10)), draw.integers(3, VOCABULARY, (4, 9))
    source[1, 7:] = target[2, 6:] = 0
    return Batch(source, target[:, :-1], target[:, 1:])


def trace_step(name, plain=False):
    """Return the trace of the third training step of a model: the first two fill what is kept for later."""
    model, batch = make_model(name), make_batch(name)
    optimizer, rng = Adam(model), np.random.default_rng(5)
    with plain_pairs() if plain else nullcontext():
        for _ in range(2):
            make_step(model, optimizer, [batch], [rng], 1e-3, 1.0)
        return trace(lambda: make_step(model, optimizer, [batch], [rng], 1e-3, 1.0))


def trace(function):
    """Return the trace of a call of the function."""
    functions, is_inside, deepest = Counter(), [], 0

    def profile(frame, event, argument):
        nonlocal deepest
        if event == "call":
            code = frame.f_code
            is_inside.append(code.co_filename.startswith(PACKAGE))
            if is_inside[-1]:
                functions[code.co_filename.removeprefix(PACKAGE), code.co_qualname] += 1
                deepest = max(deepest, sum(is_inside))
        elif event == "return" and is_inside:
            is_inside.pop()

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return Trace(functions, deepest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=["llama", "gpt", "transformer"])
    for option in ("--files", "--functions", "--plain"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    for name in options.models:
        found = trace_step(name, options.plain)
        print(f"{name}: files {len(found.files)}, calls {found.calls}, depth {found.depth}")
        for file, calls in found.files.most_common() if options.files else ():
            print(f"{calls:5d}  {file}")
        for (file, function), calls in found.functions.most_common(40) if options.functions else ():
            print(f"{calls:5d}  {file}: {function}")


if __name__ == "__main__":
    main()
