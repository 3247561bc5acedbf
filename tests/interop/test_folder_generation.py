"""Greedy generation by decoder-only models: the same tokens as generate() of transformers."""

import os

import numpy as np
import pytest
from hugging_face_oracles import save_oracle

from npformer.generation.sampling import sample_ids
from npformer.interop import load_folder

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from gpt_oracles import CONTEXT, FAMILIES, random_oracle  # noqa: E402  it imports torch

pytestmark = pytest.mark.torch

N_MODELS = 5 if os.environ.get("NPFORMER_NIGHTLY") else 2
N_PROMPTS, N_TOKENS = 10, 20  # of each model
LONGEST = 12  # tokens of a prompt


@pytest.mark.parametrize("seed", range(N_MODELS))
@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_are_continued_as_by_transformers(tmp_path, family, seed):
    rng = np.random.default_rng(seed)
    context = CONTEXT.get(family, "max_position_embeddings")
    # a tied output would mostly repeat the last token
    changes = {"vocab_size": 60, "tie_word_embeddings": False, context: LONGEST + N_TOKENS}
    oracle = save_oracle(random_oracle(family, rng, **changes), tmp_path, seed=seed, dtype="float32")
    model = load_folder(tmp_path, np.float64).model
    lengths = rng.integers(1, LONGEST + 1, N_PROMPTS)
    prompts = [rng.integers(0, model.config.vocab_size, length).tolist() for length in lengths]
    found = np.stack(list(sample_ids(model, prompts, N_TOKENS)), 1).tolist()  # all at once, as a batch
    expected = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        output = oracle.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=N_TOKENS, do_sample=False
        )
        expected.append(output[0, len(prompt) :].tolist())
    assert found == expected
    assert len(set(map(tuple, expected))) > 3  # they depend on the prompt
