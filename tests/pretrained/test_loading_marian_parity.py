"""Translations and attention of texts by a Marian folder, with transformers as the oracle."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")
import torch
import transformers
from marian_folders import marian_folder, sentences
from tokenizer_folders import load_oracle

import npformer
from npformer.generation import translate_ids

pytestmark = pytest.mark.torch

N_SENTENCES = 50
NAMES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def test_texts_tokens_and_attention(tmp_path):
    folder = marian_folder(tmp_path / "marian")
    loaded = npformer.load(folder, dtype="float64")
    oracle = transformers.MarianMTModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    tokenizer, texts = load_oracle(folder), sentences(N_SENTENCES)

    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    ids = oracle.generate(**inputs)  # (B, T), the start symbol first
    end = oracle.config.eos_token_id
    expected = [row[1 : row.index(end, 1)] for row in ids.tolist()]
    sources = [loaded.source_ids(text) for text in texts]
    assert translate_ids(loaded.model, sources, **loaded.search_settings()) == expected
    assert loaded.translate(texts) == tokenizer.batch_decode(ids, skip_special_tokens=True)
    assert len(set(map(tuple, expected))) > N_SENTENCES / 2

    best = oracle.generate(**inputs, num_return_sequences=4, output_scores=True, return_dict_in_generate=True)
    found = [each for four in loaded.translate(texts, n_best=4) for each in four]
    assert [each.text for each in found] == tokenizer.batch_decode(best.sequences, skip_special_tokens=True)
    scores = best.sequences_scores.numpy()  # transformers adds in float32
    np.testing.assert_allclose([each.score for each in found], scores, rtol=1e-5)

    found = loaded.attention(texts[4])
    target_in = torch.tensor([[oracle.config.decoder_start_token_id, *expected[4]]])
    one = tokenizer([texts[4]], return_tensors="pt")
    with torch.no_grad():
        outputs = oracle(**one, decoder_input_ids=target_in, output_attentions=True)
    for kind, name in NAMES.items():
        theirs = torch.stack(getattr(outputs, name))[:, 0].numpy()
        np.testing.assert_allclose(found.weights[kind], theirs, atol=1e-10)
    logits = loaded.logits(one["input_ids"].numpy(), target_in.numpy())
    np.testing.assert_allclose(logits, outputs.logits.numpy(), atol=1e-9)
