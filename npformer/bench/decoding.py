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


def with_and_without_cache(workers: int) -> Measurement:
    """Measure one greedy translation. The ratio is the time without a KV cache over the time with one."""
    model, sources = _translator(BASE8K, 1, (LENGTH, LENGTH))

    def translate(cached: bool) -> list[list[int]]:
        return translate_ids(model, sources, max_length=LENGTH, cached=cached, threads=workers)

    with_cache, translations = timed(lambda: translate(True))
    without_cache, _ = timed(lambda: translate(False))
    return _measurement(with_cache, 1, count(translations), ratio=without_cache / with_cache)


def batched_decoding(workers: int, beam: int) -> Measurement:
    """Measure many translations, each at most as long as its source with the end symbol. Beam 1 is greedy."""
    model, sources = _translator(TINY, SENTENCES, LENGTHS)
    lengths = [len(source) for source in sources]
    seconds, translations = timed(
        lambda: translate_ids(model, sources, beam=beam, max_length=lengths, threads=workers)
    )
    return _measurement(seconds, SENTENCES, count(translations))


def generation(workers: int, n_prompts: int) -> Measurement:
    """Measure the greedy continuation of a batch of prompts by a GPT, with the reading of the prompts."""
    model = _gpt()
    prompts = np.random.default_rng(SEED).integers(0, model.config.vocab_size, (n_prompts, PROMPT))
    with threadpool_limits(workers, user_api="blas"):
        list(sample_ids(model, prompts, 2))  # warms up
        seconds, steps = timed(lambda: list(sample_ids(model, prompts, CONTINUATION)))
    return _measurement(seconds, n_prompts, n_prompts * len(steps))


def generation_products(workers: int, n_prompts: int) -> Measurement:
    """Measure the floor of `generation`: each step multiplies one vector of each text by all matrices.

    For one text, this is the time in which the processor reads all weights.
    """
    matrices = step_matrices(_gpt())
    inputs = {len(matrix): np.ones((n_prompts, len(matrix)), matrix.dtype) for matrix in matrices}

    def multiply(n_steps: int) -> None:
        for _ in range(n_steps):
            for matrix in matrices:
                inputs[len(matrix)] @ matrix

    with threadpool_limits(workers, user_api="blas"):
        multiply(1)  # warms up
        seconds, _ = timed(lambda: multiply(CONTINUATION))
    return _measurement(seconds, n_prompts, n_prompts * CONTINUATION)


def _measurement(seconds: float, sentences: int, tokens: int, ratio: float | None = None) -> Measurement:
    return {"ratio": ratio, "seconds": seconds, "sentences": sentences, "tokens": tokens}


def step_matrices(model: GPT) -> list[Array]:
    """Return the matrices (n_in, n_out) by which a step of decoding multiplies the vector of a token."""
    layers = [p.value for layer in model.layers for p in layer.parameters() if p.value.ndim == 2]
    output = model.output.weight.value
    return [*layers, output.T if model.config.tied else output]


def _gpt() -> GPT:
    """Return an untrained GPT of the size of GPT-2."""
    return GPT(GPTConfig.preset("gpt2"), rng=np.random.default_rng(SEED))


def _translator(setup: Setup, number: int, lengths: tuple[int, int]) -> tuple[Transformer, list[list[int]]]:
    """Return an untrained translator, warmed up, and random sentences of lengths[0] to lengths[1] tokens."""
    model = Transformer(setup.config().replace(max_length=lengths[1] + 2), rng=np.random.default_rng(SEED))
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(lengths[0], lengths[1] + 1, number)
    sources = [[*rng.integers(END + 1, setup.vocab_size, length).tolist(), END] for length in drawn]
    translate_ids(model, sources[:20], max_length=2)
    return model, sources


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
