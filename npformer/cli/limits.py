"""Limits that are checked before memory is used: of models, beams, threads, arrays and pictures.

The sizes are computed by arithmetic, without allocating anything, and are a little below what is really used:
what is refused is impossible, and what is close to the limit is tried.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from npformer.errors import UserError
from npformer.functional.positions import LAYOUTS
from npformer.models.bert import BertConfig
from npformer.models.gpt import GPTConfig
from npformer.models.recurrent import RecurrentConfig
from npformer.models.registry import ModelConfig
from npformer.models.transformer import TransformerConfig
from npformer.models.universal import UniversalConfig
from npformer.nn.recurrent import KINDS

if TYPE_CHECKING:  # translating a sentence loads neither of them
    from npformer.data.base_dataset import Dataset
    from npformer.training import TrainingConfig

FLOAT = 4  # bytes of a float32
# parameters and gradients, each once in the layers and once in the buffer of the model, which is made from
# them; later the parameters, the gradients and Adam's two moments
COPIES = 4
LAYER = 10_000  # bytes of the Python objects of a layer, without its arrays
MOST_THREADS = 1024
MOST_EPOCHS = 10_000  # the batches of all epochs are planned before the first step, to count them
MOST_LABELS = 119  # lines of 8 points on the side of the largest picture

PROCESS = Path("/proc/self")
MEMORY_INFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")


# The memory of this machine


def available_memory() -> int | None:
    """Return the bytes that this process can still use, or None where the system does not say.

    They are those that the machine has free, and no more than its control group and its own limit leave.
    """
    found = [*_machine_memory(), *_cgroup_memory(), *_address_space()]
    return max(0, min(found)) if found else None


def _machine_memory() -> Iterator[int]:
    """Yield the free memory of the machine with its swap space, or else all of its memory."""
    info = _fields(MEMORY_INFO)
    if "MemAvailable" in info:
        yield info["MemAvailable"] + info.get("SwapFree", 0)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroup_memory() -> Iterator[int]:
    """Yield what each control group of this process, and each group above it, leaves free."""
    for line in _lines(PROCESS / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = CGROUPS / controllers
        limit, used = ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else (
            "memory.max",
            "memory.current",
        )  # fmt: skip
        group = Path(path.lstrip("/"))
        for folder in {root / group, *(root / above for above in group.parents), root}:
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and most < 2**62:  # "no limit" is a number near 2**63 in the older form
                cache = _fields(folder / "memory.stat", scale=1)  # the system drops cached files when needed
                yield most - (now or 0) + cache.get("total_inactive_file", cache.get("inactive_file", 0))


def _address_space() -> Iterator[int]:
    """Yield what the limit of this process on its address space leaves, as `ulimit -v` sets it."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        yield limit - _fields(PROCESS / "status").get("VmSize", 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    """Return the number in a file, or None if there is none, as in "max"."""
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _fields(path: Path, scale: int = 1024) -> dict[str, int]:
    """Return the numbers in lines such as "MemAvailable:  1234 kB", in bytes."""
    words = (line.replace(":", " ").split() for line in _lines(path))
    return {word[0]: int(word[1]) * scale for word in words if len(word) > 1 and word[1].isdecimal()}


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Raise UserError if something needs more memory than this process can use.

    Args:
        needed: The bytes that are needed.
        what: The beginning of the sentence, such as "a model with 12 parameters".
        remedy: The end of the sentence: what to do.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise UserError(f"{what} needs {size(needed)} of memory, and {size(available)} are free: {remedy}")


def size(n_bytes: int) -> str:
    """Return a number of bytes as text, such as "3.2 GB"."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if n_bytes >= unit:
            whole = n_bytes * 10 // unit
            return f"{whole // 10:,}.{whole % 10} {name}"
    return f"{n_bytes:,} bytes"


# The sizes of models


def count_parameters(config: ModelConfig) -> int:
    """Return the number of parameters of the model with this configuration."""
    if isinstance(config, (GPTConfig, BertConfig)):
        return config.count_parameters()
    if isinstance(config, RecurrentConfig):
        return _recurrent_parameters(config)
    return _transformer_parameters(config)


def _linear(n_in: int, n_out: int, bias: bool = True) -> int:
    return n_in * n_out + n_out * bias


def _transformer_parameters(config: TransformerConfig) -> int:
    d, sequence = config.d_model, config.norm
    keys, values = config.n_heads * config.head_key, config.n_heads * config.head_value
    bias = config.attention_bias
    attention = 2 * _linear(d, keys, bias) + _linear(d, values, bias)
    attention += _linear(values, d, bias) if config.attention_output else 0
    relative = (2 * config.max_distance + 1) * (config.head_key + config.head_value)
    of_self = attention + (relative if config.positions == "relative" else 0)
    norm = 2 * d
    norms = norm * (sequence.count("n") if "-" in sequence else 1)
    feed_forward = _linear(d, config.d_ff) + _linear(config.d_ff, d)
    encoder_layer = of_self + feed_forward + 2 * norms
    decoder_layer = of_self + attention + feed_forward + 3 * norms
    tables = config.source_vocab * d + (config.target_vocab * d if config.tied != "all" else 0)
    tables += 2 * config.max_length * d if config.positions == "learned" else 0
    output = d * config.target_vocab if config.tied == "none" else 0
    output += config.target_vocab if config.output_bias else 0
    layers = config.distinct_layers * encoder_layer + config.distinct_decoder_layers * decoder_layer
    if isinstance(config, UniversalConfig) and config.halting:
        layers += 2 * _linear(d, 1)
    return layers + 2 * norm * config.final_norm + tables + output


def _recurrent_parameters(config: RecurrentConfig) -> int:
    n, (gates, states) = config.d_hidden, KINDS[config.cell]

    def recurrent(n_in: int, width: int) -> int:
        return _linear(n_in, gates * width) + _linear(width, gates * width)

    directions = 2 if config.bidirectional else 1
    encoder = directions * recurrent(config.d_model, n // directions)
    wider = n if config.attention == "additive" or config.feeding else 0
    decoder = recurrent(config.d_model + wider, n)
    if config.attention != "none":
        score = "perceptron" if config.attention == "additive" else config.score
        similarity = {"dot": 0, "general": n * n, "concat": 2 * n, "perceptron": 2 * n * n + n}[score]
        place = n * n + n if config.attention == "local-p" else 0
        decoder += similarity + place + 2 * n * n
    tables = (config.source_vocab + config.target_vocab) * config.d_model
    return tables + encoder + decoder + _linear(n, states * n) + _linear(n, config.target_vocab)


def model_bytes(config: ModelConfig, *, workers: int = 1) -> int:
    """Return the bytes of a model with its gradients and optimizer, or of making it without these.

    Args:
        config: The configuration of the model.
        workers: The number of workers, each of which has gradients of its own.
    """
    needed = (COPIES + workers - 1) * FLOAT * count_parameters(config)
    if isinstance(config, TransformerConfig):
        layers = config.n_layers + config.n_decoder_layers
        needed += LAYER * layers * workers
        if config.positions in LAYOUTS:  # tables of sinusoids for both sides
            needed += 2 * FLOAT * config.max_length * config.d_model
        if config.positions == "rotary":  # cosines and sines in each layer of both stacks
            needed += layers * FLOAT * config.max_length * config.head_key
    return needed


def step_bytes(config: ModelConfig, training: "TrainingConfig", dataset: "Dataset") -> int:
    """Return the bytes of the largest arrays that a batch of average examples needs in a training step.

    Args:
        config: The configuration of the model.
        training: The settings of the training, with the size of a batch.
        dataset: The examples.
    """
    read = dataset.loader(config.max_length, **training.batching).mean_tokens()
    needed = 2 * read[-1] * config.target_vocab  # logits and their gradient
    needed += sum(read) * _activations(config)
    ids = 8 * (sum(read) + read[-1]) * training.accumulate  # of all batches of the step
    return math.ceil(FLOAT * needed + ids)


def _activations(config: ModelConfig) -> int:
    """Return how many numbers the layers keep for each token, or 0 for a recurrent model."""
    if isinstance(config, RecurrentConfig):
        return 0
    hidden = config.hidden_width if isinstance(config, (GPTConfig, BertConfig)) else config.d_ff
    # queries, keys, values and output of attention, and the hidden layer of the feed-forward network
    return config.n_layers * (4 * config.d_model + hidden)


def require_training(
    config: ModelConfig, training: "TrainingConfig", dataset: "Dataset", *, workers: int | None
) -> None:
    """Raise UserError if a model with its optimizer, or a batch, does not fit into the memory or the time.

    Args:
        config: The configuration of the model.
        training: The settings of the training.
        dataset: The sentences.
        workers: The number of workers, or None for one.
    """
    require_threads("--workers", workers)
    if training.epochs is not None and training.epochs > MOST_EPOCHS:
        raise UserError(f"epochs is {training.epochs}: give at most {MOST_EPOCHS}, or a number of steps")
    workers = workers or 1
    count = count_parameters(config)
    what, remedy = f"a model with {count:,} parameters, with gradients and optimizer", "make it smaller"
    if workers > 1:
        what, remedy = f"{what} and {workers} workers", f"{remedy}, or use fewer workers"
    require_memory(model_bytes(config, workers=workers), f"{what},", remedy)
    require_memory(
        model_bytes(config, workers=workers) + step_bytes(config, training, dataset),
        f"a training step of a model with {count:,} parameters",
        "give a smaller --batch-size, or add up fewer batches",
    )


# Other limits


def require_threads(option: str, count: int | None) -> None:
    """Raise UserError for more threads than any machine can use."""
    if count is not None and count > MOST_THREADS:
        raise UserError(
            f"{option} is {count}, and this machine has {os.cpu_count() or 1} processors: "
            f"give at most {MOST_THREADS}"
        )


def require_beam(config: ModelConfig, beam: int) -> None:
    """Raise UserError if the hypotheses of one sentence do not fit into the memory."""
    vocab, tokens = config.target_vocab, min(config.max_length, 10)
    # the logits, their softmax, and the best tokens with their probabilities
    row = 2 * FLOAT * vocab + 16 * min(beam, vocab)
    if isinstance(config, TransformerConfig):  # keys and values of the tokens so far
        row += FLOAT * config.n_layers * config.n_heads * (config.head_key + config.head_value) * tokens
    require_memory(beam * row, f"--beam {beam}", "give a smaller one")


def require_labels(queries: int, keys: int, options: str) -> None:
    """Raise UserError if a picture has no room for so many queries or keys.

    Args:
        queries: The number of rows.
        keys: The number of columns.
        options: What to change, for the message.
    """
    if max(queries, keys) > MOST_LABELS:
        raise UserError(
            f"a picture of {queries:,} × {keys:,} cells has no room for its words, at most {MOST_LABELS} on "
            f"each side: {options}"
        )


def require_arrays(shapes: list[tuple[int, ...]]) -> None:
    """Raise UserError if inputs of these shapes, and their gradients, do not fit into the memory."""
    needed = 32 * sum(math.prod(shape) for shape in shapes)  # complex numbers, twice
    shown = " and ".join(",".join(map(str, shape)) for shape in shapes)
    require_memory(needed, f"--shape {shown[:60]}", "give a smaller one")
