"""Greedy search: the most probable token at each position."""

import numpy as np
from decoding_models import CONFIGS, every_config, random_model, random_source

from npformer.data import END, PAD, UNK
from npformer.generation import greedy


def by_hand(model, sentence, max_length):
    """Search by the definition, for one sentence without padding: run the whole model for each token."""
    ids: list[int] = []
    while len(ids) < max_length:
        logits, _ = model.forward(np.array([sentence]), np.array([[model.config.start_id, *ids]]))
        logits[..., [PAD, UNK, model.config.start_id]] = -np.inf
        token = int(logits[0, -1].argmax())
        if token == END:
            break
        ids.append(token)
    return ids


@every_config
def test_a_batch_gives_the_same_as_its_sentences_one_by_one_with_and_without_cache(config):
    model, source = random_model(config, 3), random_source(config)
    sentences = [[token for token in row if token != PAD] for row in source.tolist()]
    expected = [by_hand(model, sentence, 8) for sentence in sentences]
    for cached in (True, False):
        assert greedy(model, source, max_length=8, cached=cached) == expected


def test_finished_sentences_leave_the_batch():
    config = CONFIGS["datawhale"]
    for seed in range(3):
        model, source = random_model(config, seed), random_source(config)
        rows, step = [], model.decode_step
        model.decode_step = lambda ids, *rest, step=step, rows=rows: rows.append(len(ids)) or step(ids, *rest)
        lengths = [len(ids) for ids in greedy(model, source, max_length=9)]
        # A sentence of n tokens takes n steps and one more for its end symbol, unless the limit ends it.
        # Finished sentences are removed together, as soon as they are a quarter of the rows.
        expected = [len(source)]
        for t in range(1, max(min(n + 1, 9) for n in lengths)):
            live = sum(min(n + 1, 9) > t for n in lengths)
            expected.append(live if live <= 0.75 * expected[-1] else expected[-1])
        assert rows == expected
