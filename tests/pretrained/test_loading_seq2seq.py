"""npformer.load of a BART, an mBART and a T5 with text: the tokens of transformers, and what looks inside."""

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from seq2seq_oracles import by_side  # noqa: E402  it imports torch
from tokenizer_folders import load_oracle, roberta, unigram, write_json  # noqa: E402  it imports tokenizers

import npformer  # noqa: E402

pytestmark = pytest.mark.torch

SIZES = {"vocab_size": 620, "d_model": 24, **by_side(layers=2, attention_heads=3, ffn_dim=40)}
IDS = {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}
# the configuration, the writer of the tokenizer, and what generation_config.json says beside the ids
MODELS = {
    "bart": (transformers.BartConfig(**SIZES | IDS), roberta, {"forced_bos_token_id": 0}),
    "mbart": (
        transformers.MBartConfig(**SIZES | IDS),
        lambda folder: unigram(folder, "mbart"),
        {"forced_bos_token_id": 502},
    ),
    "t5": (
        transformers.T5Config(
            vocab_size=620,
            d_model=24,
            d_kv=8,
            d_ff=40,
            num_layers=2,
            num_heads=3,
            decoder_start_token_id=0,
            feed_forward_proj="gated-gelu",
        ),
        lambda folder: unigram(folder, "t5"),
        {},
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def folder(request, tmp_path_factory):
    """A folder with random weights and a tokenizer."""
    config, write_tokenizer, search = MODELS[request.param]
    path = tmp_path_factory.mktemp(request.param) / "model"
    write_tokenizer(path)
    torch.manual_seed(1)
    oracle = transformers.AutoModelForSeq2SeqLM.from_config(config).double()
    with torch.no_grad():
        for parameter in oracle.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    oracle.save_pretrained(path)
    ids = {name: getattr(config, name) for name in IDS}
    write_json(path / "generation_config.json", {**ids, **search, "num_beams": 4, "max_length": 9})
    return path


def test_text(folder):
    loaded, tokenizer = npformer.load(folder, dtype="float64"), load_oracle(folder)
    oracle = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64)
    texts = ["First Citizen:", "the man", ""]
    expected = []
    for text in texts[:2]:
        read = tokenizer(text, return_tensors="pt")
        assert loaded.tokenizer.encode(text).ids == read.input_ids[0].tolist()
        (row,) = oracle.generate(read.input_ids)
        expected.append(tokenizer.decode(row, skip_special_tokens=True))
    assert loaded.translate(texts) == [*expected, ""]

    first = json.loads((folder / "generation_config.json").read_text()).get("forced_bos_token_id")
    words = loaded.score("the man", "First").tokens
    assert (words[0] == loaded.target_tokenizer.piece(first)) if first is not None else words[0] == " First"
    begun = loaded.translate("the man", begin="First", n_best=1)[0]
    assert begun.tokens[: len(words) - 1] == words[:-1]

    found = loaded.attention("the man")
    assert found.source_tokens == loaded.tokenizer.encode("the man").pieces
    assert abs(loaded.saliency("the man", position=1, tolerance=1e-3, most_points=4000).gap) < 1e-3
    run = loaded._reading("the man")
    assert loaded.lens("the man").ids[-1, :, 0].tolist() == loaded.model(*run.ids)[0].argmax(-1).tolist()
    parts = loaded.attribution("the man", position=1)
    assert parts.sum == pytest.approx(parts.logit, abs=1e-10)
    assert loaded.patch("the man", "man the").effects
    assert loaded.explore("the man").kind == "recorded"
