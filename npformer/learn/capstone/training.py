"""Train the assembled Transformer on short sentences of the built-in corpus, and translate with it.

The training runs in rounds. Each round is a child process with a time limit, which makes some steps and
returns the parameters. The parent saves them, so an interrupted training goes on after the last round. The
batches, the schedule of the learning rate and the clipping of gradients are the package's.
"""

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npformer.data.corpus import Pair, builtin_corpus
from npformer.data.dataset import builtin_dataset
from npformer.data.loader import Batch, make_batch, pad
from npformer.data.vocabulary import PAD
from npformer.language import GRADER, later, phrase, say
from npformer.learn.capstone.assemble import AssembledTransformer, capstone_config, compute_loss
from npformer.learn.capstone.functions import Functions, LearnersError, guarded
from npformer.learn.capstone.parts import Part
from npformer.learn.capstone.saved import KEY, TENSORS, SavedTransformer, fingerprint_of
from npformer.learn.tasks import Folder
from npformer.learn.tasks.process import ask_child
from npformer.storage.atomic import write_atomically
from npformer.storage.checksummed import checksummed_bytes, read_checksummed
from npformer.training.optimizer import Adam, clip_global_norm, cosine

STEPS = 1500  # of the whole training
ROUND = 100  # steps of one child process
SECONDS = 120.0  # the default limit on processor time of a round
BATCH_SIZE = 64
LEARNING_RATE = 3e-3  # the highest one, after a tenth of the steps
CLIP_NORM = 1.0
WORDS = 7  # of the longest English sentence in training
LONGEST = 30  # tokens of a translation
SAMPLE = "the dog is tired"  # translated after every round
WORST = 20  # steps over which the loss of a round is averaged
UNREADABLE = later("its results cannot be read")


@dataclass(frozen=True)
class Round:
    """The state of the training after a round.

    Args:
        step: The number of steps so far.
        loss: The mean loss of the last steps.
        sample: The translation of SAMPLE.
    """

    step: int
    loss: float
    sample: str


# ---------------------------------------------------------------------------------------------------------
# The parent process


def begin_training(folder: Folder, parts: Sequence[Part], steps: int = STEPS) -> SavedTransformer:
    """Return a Transformer before its first step.

    Args:
        folder: The folder of the learner's files.
        parts: The parts that are the learner's.
        steps: The number of steps of the training.
    """
    dataset = builtin_dataset()
    return SavedTransformer(
        steps,
        [part.name for part in parts],
        fingerprint_of(folder, parts),
        dataset.source.to_json(),
        dataset.target.to_json(),
    )


def train_rounds(folder: Folder, saved: SavedTransformer, seconds: float = SECONDS) -> Iterator[Round]:
    """Train a Transformer to its last step, and save it after each round.

    Args:
        folder: The folder of the learner's files.
        saved: The Transformer, which is changed.
        seconds: The limit on processor time of a round.

    Yields:
        What is known after each round.

    Raises:
        LearnersError: If the learner's code fails, or returns something else than numbers.
    """
    source, target = saved.codecs
    examples = [pair for pair in builtin_dataset().train if len(pair[0]) <= WORDS]
    arrays = {
        "sources": pad([list(one) for one, _ in examples]),  # (N, S)
        "targets": pad([list(other) for _, other in examples]),  # (N, T)
        "sample": np.array(source.encode(SAMPLE)),
    }
    while not saved.finished:
        count = min(ROUND, saved.steps - saved.step)
        results = _ask(folder, saved, arrays, "train_round", [str(count), *saved.own], seconds)
        sample = _take_round(saved, results, count)
        saved.save(folder.path)
        loss = float(np.mean(saved.losses[-WORST:]))
        yield Round(saved.step, loss, target.decode(sample))


def _ask(
    folder: Folder,
    saved: SavedTransformer,
    arrays: dict[str, np.ndarray],
    function: str,
    arguments: Sequence[str],
    seconds: float,
) -> dict[str, Any]:
    """Return the results of a function of this module, which runs in a child process.

    Args:
        folder: The folder of the learner's files.
        saved: The Transformer.
        arrays: Other arrays that the function needs.
        function: The name of the function. Its first arguments are the folder, and the file with all arrays.
        arguments: Its other arguments.
        seconds: The limit on processor time.

    Raises:
        LearnersError: If there are no results.
    """
    settings = {"steps": saved.steps, "step": saved.step, "sizes": saved.sizes}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "arrays.safetensors"
        write_atomically(path, checksummed_bytes(arrays | saved.tensors, settings, key=KEY))
        given = [str(folder.path), str(path), *arguments]
        answer = ask_child(f"{__name__}:{function}", given, folder.path, seconds=seconds)
    match answer.values:
        case [{"error": str(error)}]:
            raise LearnersError(error)
        case [dict(results)] if not answer.problem:
            return results
    raise LearnersError(answer.problem or phrase(UNREADABLE, GRADER))


def _take_round(saved: SavedTransformer, results: dict[str, Any], count: int) -> list[int]:
    """Put the results of a round into the Transformer, and return the tokens of the sample.

    Raises:
        LearnersError: If the results have another form.
    """
    match results:
        case {"losses": [*losses], "sample": sample, "values": values, "m": m, "v": v}:
            tensors = dict(zip(TENSORS, (values, m, v), strict=True))
        case _:
            raise LearnersError(phrase(UNREADABLE, GRADER))
    shape = np.shape(saved.tensors["values"]) if saved.tensors else np.shape(values)
    right = all(
        isinstance(a, np.ndarray) and a.shape == shape and a.dtype == np.float32 for a in tensors.values()
    )
    if not right or len(losses) != count or not all(isinstance(loss, float) for loss in losses):
        raise LearnersError(
            say("adam_step has changed the shape or the dtype of an array: change it in place")
        )
    saved.tensors, saved.step, saved.losses = tensors, saved.step + count, saved.losses + losses
    return _as_sentences(saved, [sample])[0]


def translate(
    folder: Folder, saved: SavedTransformer, own: Sequence[str], sentences: Sequence[str], seconds: float
) -> list[str]:
    """Translate sentences with the trained Transformer, by the greedy search of the parts.

    Args:
        folder: The folder of the learner's files.
        saved: The Transformer.
        own: The names of the parts that are the learner's now.
        sentences: The sentences, each with at least one word.
        seconds: The limit on processor time.

    Raises:
        LearnersError: If the learner's code fails, or returns something else than sentences.
    """
    source, target = saved.codecs
    arrays = {"sources": pad([source.encode(sentence) for sentence in sentences])}
    results = _ask(folder, saved, arrays, "translate_ids", own, seconds)
    if "sentences" not in results:
        raise LearnersError(phrase(UNREADABLE, GRADER))
    rows = _as_sentences(saved, results["sentences"])
    if len(rows) != len(sentences):
        text = say("greedy returns {count} sentences for {all}", count=len(rows), all=len(sentences))
        raise LearnersError(text)
    return [target.decode(row) for row in rows]


def _as_sentences(saved: SavedTransformer, found: Any) -> list[list[int]]:
    """Return the lists of ids that greedy search found.

    Raises:
        LearnersError: If these are not lists of ids.
    """
    size = len(saved.codecs[1].vocabulary)
    if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
        raise LearnersError(say("greedy does not return a list of lists of ids"))
    # the exercise accepts NumPy's integers too
    if not all(isinstance(token, int | np.integer) and 0 <= token < size for row in found for token in row):
        raise LearnersError(
            say("greedy returns something other than ids of the vocabulary: give Python ints")
        )
    return [[int(token) for token in row] for row in found]


def held_out_pairs(count: int) -> list[Pair]:
    """Return pairs of short sentences that are not among the training sentences."""
    pairs = [pair for pair in builtin_corpus().test if len(pair.english.split()) <= WORDS]
    return pairs[:: max(1, len(pairs) // count)][:count]


# ---------------------------------------------------------------------------------------------------------
# The child process


def train_round(folder: str, path: str, count: str, *own: str) -> Iterator[dict[str, Any]]:
    """Read the file of a round, and return an iterator that makes its steps.

    Args:
        folder: The folder of the learner's files.
        path: The file of the round.
        count: The number of steps.
        own: The names of the parts that are the learner's.
    """
    tensors, settings = read_checksummed(path, key=KEY)

    def work(functions: Functions) -> dict[str, Any]:
        model, adam = _model_of(functions, tensors, settings)
        losses = [
            _step(functions, model, adam, _batch_of(tensors, step), _rate(step, settings["steps"]), step)
            for step in range(settings["step"] + 1, settings["step"] + 1 + int(count))
        ]
        source = make_batch([(tensors["sample"].tolist(), [])]).source
        (sample,) = functions.greedy(model, source, max_length=LONGEST)
        return {"losses": losses, "sample": sample, "values": model.values, "m": adam.m, "v": adam.v}

    return guarded(Path(folder), own, work)


def translate_ids(folder: str, path: str, *own: str) -> Iterator[dict[str, Any]]:
    """Read a file with sentences, and return an iterator that translates them.

    Args:
        folder: The folder of the learner's files.
        path: The file.
        own: The names of the parts that are the learner's.
    """
    tensors, settings = read_checksummed(path, key=KEY)

    def work(functions: Functions) -> dict[str, Any]:
        model, _ = _model_of(functions, tensors, settings)
        source = make_batch([(_tokens(row), []) for row in tensors["sources"]]).source
        return {"sentences": functions.greedy(model, source, max_length=LONGEST)}

    return guarded(Path(folder), own, work)


def _model_of(functions: Functions, tensors: dict[str, Any], settings: dict[str, Any]) -> tuple[Any, Adam]:
    """Return the assembled Transformer and its optimizer, as they are after the steps so far."""
    config = capstone_config(**settings["sizes"])
    model = AssembledTransformer(functions, config, rng=np.random.default_rng(0))
    adam = Adam(model)
    if settings["step"]:
        model.values[...] = tensors["values"]
        adam.m[...], adam.v[...], adam.t = tensors["m"], tensors["v"], settings["step"]
    return model, adam


def _rate(step: int, steps: int) -> float:
    """Return the learning rate of a step."""
    return cosine(LEARNING_RATE, steps, max(1, steps // 10))(step)


def _batch_of(tensors: dict[str, Any], step: int) -> Batch:
    """Return the batch of a step, which depends on its number alone."""
    rows = np.random.default_rng(step).choice(len(tensors["sources"]), BATCH_SIZE, replace=False)
    return make_batch([(_tokens(tensors["sources"][row]), _tokens(tensors["targets"][row])) for row in rows])


def _tokens(row: Any) -> list[int]:
    """Return the ids of a padded row."""
    tokens: list[int] = row[row != PAD].tolist()
    return tokens


def _step(
    functions: Functions, model: AssembledTransformer, adam: Adam, batch: Batch, rate: float, step: int
) -> float:
    """Make one step of training and return its loss.

    Args:
        functions: The functions of all parts.
        model: The Transformer.
        adam: Its optimizer.
        batch: The sentences.
        rate: The learning rate.
        step: The number of the step, for messages.

    Raises:
        LearnersError: If the loss is not a finite number.
    """
    model.zero_grad()
    logits, cache = model.forward(batch.source, batch.target_in)  # (B, T, V)
    loss, dlogits = compute_loss(functions, logits, batch.target_out)
    if not math.isfinite(loss):
        raise LearnersError(say("the loss is {loss} in step {step}", loss=loss, step=step))
    model.backward(dlogits, cache)
    clip_global_norm(model.grads, CLIP_NORM)
    functions.adam_step(adam, rate)
    return loss
