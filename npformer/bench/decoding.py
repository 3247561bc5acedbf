"""The speed of translation, with and without a KV cache, and of the generation of text.

The models are untrained. The translators hardly ever predict the end symbol, so each translation is as long
as allowed.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.backend import Array
from npformer.bench.setups import BASE8K, SEED, TINY, Setup
from npformer.data.vocabulary import END
from npformer.generation import sample_ids, translate_ids
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.transformer import Transformer

LENGTH = 48  # tokens of the one sentence that is translated with and without a KV cache
SENTENCES, LENGTHS = 1000, (8, 18)  # most captions of Multi30k and their translations have these lengths
BEAM = 5
PROMPT, CONTINUATION = 32, 128  # tokens of a prompt of GPT-2, and of the text after it

Measurement = dict[str, Any]


def with_and_without_cache(workers: int, *, setup: Setup = BASE8K, length: int = LENGTH) -> Measurement:
    """Measure one greedy translation. The ratio is the time without a KV cache divided by the time with one.

    Args:
        workers: The number of threads.
        setup: The setup of the model.
        length: The number of tokens of the source and of the translation.
    """
    model = Transformer(setup.config().replace(max_length=length + 1), rng=np.random.default_rng(SEED))
    sources = sentences(setup, 1, (length, length))

    def translate(cached: bool) -> list[list[int]]:
        return translate_ids(model, sources, max_length=length, cached=cached, threads=workers)

    translate_ids(model, sources, max_length=2)  # warms up
    with_cache, translations = timed(lambda: translate(True))
    without_cache, _ = timed(lambda: translate(False))
    ratio = without_cache / with_cache
    return {"ratio": ratio, "seconds": with_cache, "sentences": 1, "tokens": count(translations)}


def batched_decoding(workers: int, beam: int, *, setup: Setup = TINY, number: int = SENTENCES) -> Measurement:
    """Measure many translations, each at most as long as its source with the end symbol.

    Args:
        workers: The number of threads.
        beam: The beam of beam search; 1 is greedy search.
        setup: The setup of the model.
        number: The number of sentences.
    """
    model = Transformer(setup.config().replace(max_length=LENGTHS[1] + 2), rng=np.random.default_rng(SEED))
    sources = sentences(setup, number, LENGTHS)
    lengths = [len(source) for source in sources]
    translate_ids(model, sources[:20], beam=beam, max_length=2)
    seconds, translations = timed(
        lambda: translate_ids(model, sources, beam=beam, max_length=lengths, threads=workers)
    )
    return {"ratio": None, "seconds": seconds, "sentences": number, "tokens": count(translations)}


def generation(
    workers: int, n_prompts: int, *, config: GPTConfig | None = None, length: int = CONTINUATION
) -> Measurement:
    """Measure the greedy continuation of a batch of prompts by a GPT, with the reading of the prompts.

    Args:
        workers: The number of threads.
        n_prompts: The number of prompts, which have PROMPT tokens each.
        config: The configuration. The default is that of GPT-2 with 124 million parameters.
        length: The number of tokens after each prompt.
    """
    model = _gpt(config)
    prompts = np.random.default_rng(SEED).integers(0, model.config.vocab_size, (n_prompts, PROMPT))
    with threadpool_limits(workers, user_api="blas"):
        list(sample_ids(model, prompts, 2))  # warms up
        seconds, steps = timed(lambda: list(sample_ids(model, prompts, length)))
    return {"ratio": None, "seconds": seconds, "sentences": n_prompts, "tokens": n_prompts * len(steps)}


def generation_products(
    workers: int, n_prompts: int, *, config: GPTConfig | None = None, length: int = CONTINUATION
) -> Measurement:
    """Measure the floor of `generation`: each step multiplies one vector of each text by all matrices.

    For one text, this is the time in which the processor reads all weights.

    Args:
        workers: The number of threads.
        n_prompts: The number of prompts.
        config: The configuration, as for `generation`.
        length: The number of steps.
    """
    matrices = step_matrices(_gpt(config))
    inputs = {len(matrix): np.ones((n_prompts, len(matrix)), matrix.dtype) for matrix in matrices}

    def multiply(n_steps: int) -> None:
        for _ in range(n_steps):
            for matrix in matrices:
                inputs[len(matrix)] @ matrix

    with threadpool_limits(workers, user_api="blas"):
        multiply(1)  # warms up
        seconds, _ = timed(lambda: multiply(length))
    return {"ratio": None, "seconds": seconds, "sentences": n_prompts, "tokens": n_prompts * length}


def step_matrices(model: GPT) -> list[Array]:
    """Return the matrices (n_in, n_out) by which a step of decoding multiplies the vector of a token."""
    layers = [p.value for layer in model.layers for p in layer.parameters() if p.value.ndim == 2]
    output = model.output.weight.value
    return [*layers, output.T if model.config.tied else output]


def _gpt(config: GPTConfig | None) -> GPT:
    """Return an untrained GPT, by default of the size of GPT-2."""
    return GPT(GPTConfig.preset("gpt2") if config is None else config, rng=np.random.default_rng(SEED))


def sentences(setup: Setup, number: int, lengths: tuple[int, int]) -> list[list[int]]:
    """Return random sentences of lengths[0] to lengths[1] tokens and an end symbol.

    Args:
        setup: The setup, for the size of the vocabulary.
        number: The number of sentences.
        lengths: The smallest and the largest number of tokens.
    """
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(lengths[0], lengths[1] + 1, number)
    return [[*rng.integers(END + 1, setup.vocab_size, length).tolist(), END] for length in drawn]


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def count(translations: list[list[int]]) -> int:
    """Return the total number of tokens."""
    return sum(map(len, translations))


MEASUREMENTS: dict[str, Callable[[int], Measurement]] = {
    f"base8k, greedy, 1 sentence of {LENGTH} tokens": with_and_without_cache,
    f"tiny, greedy, {SENTENCES:,} sentences": lambda workers: batched_decoding(workers, 1),
    f"tiny, beam {BEAM}, {SENTENCES:,} sentences": lambda workers: batched_decoding(workers, BEAM),
    "gpt2, greedy, 1 prompt": lambda workers: generation(workers, 1),
    "gpt2, its products alone": lambda workers: generation_products(workers, 1),
    "gpt2, greedy, 16 prompts": lambda workers: generation(workers, 16),
    "gpt2, their products alone": lambda workers: generation_products(workers, 16),
}
