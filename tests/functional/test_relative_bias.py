"""The buckets of distances, as T5 of transformers has them."""

import numpy as np

from npformer.functional import relative_buckets
from npformer.models.registry import build
from npformer.models.t5 import T5Config

SIZES = {"source_vocab": 9, "target_vocab": 9, "d_model": 8, "d_ff": 8, "n_heads": 2, "n_layers": 2}


def test_the_buckets_of_an_encoder_and_of_a_decoder():
    few = {"n_buckets": 8, "max_distance": 20}
    encoder = [3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 1, 0, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7]
    decoder = [7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 5, 5, 5, 4, 4, 3, 2, 1, 0, 0, 0, 0]
    assert relative_buckets(1, 24, np.zeros(1), **few, start=12)[0].tolist() == encoder
    assert relative_buckets(1, 24, np.zeros(1), **few, both_sides=False, start=20)[0].tolist() == decoder
    assert relative_buckets(2, 3, np.zeros(1)).tolist() == [[0, 17, 18], [1, 0, 17]]
    assert relative_buckets(1, 1, np.zeros(1), both_sides=False, start=1000).item() == 31
    usual = [relative_buckets(1, 1, np.zeros(1), start=distance).item() for distance in (8, 16, 32, 64, 128)]
    assert usual == [8, 10, 12, 14, 15]  # a bucket for each factor of sqrt(2), and the last one


def test_the_layers_of_a_stack_share_a_table_and_decoding_counts_positions():
    model = build(T5Config(**SIZES), dtype=np.float64)
    assert sum(name.endswith(".table") for name, _ in model.named_parameters()) == 2
    source, target, kv_cache = np.array([[4, 5, 6]]), np.array([[2, 4, 7, 8]]), None
    memory = model.encode(source)
    for position in range(4):
        logits, kv_cache = model.decode_step(target[:, position], position, kv_cache, *memory)
    np.testing.assert_allclose(logits, model(source, target)[:, -1], rtol=1e-10)
