"""The measurements of decoding: the floor of a step of a GPT."""

import numpy as np
import pytest

from npformer.bench.decoding import step_matrices
from npformer.models.gpt import GPT, GPTConfig

SIZES = {"vocab_size": 11, "d_model": 8, "n_layers": 2, "n_heads": 2, "context": 5}


@pytest.mark.parametrize("options", [{}, {"activation": "swiglu", "n_kv_heads": 1, "tied": False}])
def test_a_step_multiplies_by_every_matrix_once(options):
    """The only parameters that are not multiplied are vectors and the tables whose rows are looked up."""
    model = GPT(GPTConfig(**SIZES, **options), rng=np.random.default_rng(0))
    vectors = sum(p.value.size for p in model.parameters() if p.value.ndim == 1)
    tables = 5 * 8 + (0 if model.config.tied else 11 * 8)
    matrices = step_matrices(model)
    assert sum(matrix.size for matrix in matrices) == model.count_parameters() - vectors - tables
    assert matrices[-1].shape == (8, 11)
    assert all(len(matrix) in (8, model.config.hidden_width) for matrix in matrices)
