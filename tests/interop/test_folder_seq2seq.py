"""What encoder-decoder models generate: the tokens of transformers, with every setting of the search."""

from functools import cache

import numpy as np
import pytest
from hugging_face_oracles import by_their_names
from seq2seq_oracles import by_side, compute_in_float64

from npformer.data import pad
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.generation.batch_decode import search_in_parts, translate_ids
from npformer.generation.scoring import score_ids
from npformer.interop import load_folder
from npformer.interop.families import FAMILIES
from npformer.interop.generation_file import search_settings
from npformer.interop.settings_file import Settings
from npformer.models.registry import build
from npformer.models.transformer import shifted_right
from npformer.training.optimizer import Adam

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Using the model-agnostic default")]

END, PAD, VOCABULARY = 0, 11, 16
SPECIAL = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD}
SETTINGS = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "max_position_embeddings": 24,
    "activation_function": "swish",
    "scale_embedding": True,
    **by_side(attention_heads=3, ffn_dim=40),
    "encoder_layers": 1,
    "decoder_layers": 1,
    **SPECIAL,
}
FORCED = {"forced_eos_token_id": END}
# the models, and the settings of a generation_config.json that transformers writes for each
MODELS = {
    "marian": (transformers.MarianConfig(**SETTINGS), FORCED | {"bad_words_ids": [[PAD]]}),
    "bart": (transformers.BartConfig(**SETTINGS | {"decoder_start_token_id": END}, **FORCED), FORCED),
    "mbart": (transformers.MBartConfig(**SETTINGS, **FORCED), FORCED | {"forced_bos_token_id": 3}),
    "t5": (
        transformers.T5Config(
            vocab_size=VOCABULARY, d_model=24, d_kv=8, d_ff=40, num_layers=1, num_heads=3, **SPECIAL
        ),
        {},
    ),
}
N_SENTENCES = 50
SEARCHES = {
    "greedy": {},
    "beam 4": {"num_beams": 4},
    "the settings of the opus-mt translators": {"num_beams": 4, "renormalize_logits": True},
    "no length penalty": {"num_beams": 3, "length_penalty": 0.0},
    "new tokens": {"max_new_tokens": 7, "min_new_tokens": 3, "num_beams": 2},
    "the default length": {"max_length": None},
    "a large length penalty": {"num_beams": 6, "length_penalty": 2.0, "min_length": 5},
    # bart-large-cnn has 3 of them, 142 as the longest and 56 as the shortest text
    "the settings of bart-large-cnn": {
        "num_beams": 4,
        "no_repeat_ngram_size": 2,
        "early_stopping": True,
        "length_penalty": 2.0,
        "min_length": 4,
        "max_length": 14,
    },
    "no token twice, greedy": {"no_repeat_ngram_size": 1, "max_length": 9},
    "a search that ends late": {"num_beams": 3, "early_stopping": "never", "length_penalty": 1.5},
}


OF_OTHERS = ("greedy", "beam 4", "a large length penalty", "the settings of bart-large-cnn")


def random_sources(rng, count):
    """Return sentences of 1 to 12 tokens and the end symbol."""
    return [[*rng.integers(1, PAD, rng.integers(1, 13)).tolist(), END] for _ in range(count)]


def noisy(ids, rng):
    """Return ids without some of them, and with others in place of some."""
    return [int(rng.integers(1, PAD)) if rng.random() < 0.3 else i for i in ids if rng.random() < 0.8]


@cache
def trained(name):
    """A model that learned a little of writing a sentence backwards, with noise, so that it is never sure."""
    config = FAMILIES.find(name).config_of(Settings(MODELS[name][0].to_dict()))
    rng = np.random.default_rng(0)
    model = build(config, rng=rng)
    adam = Adam(model)
    for _ in range(250):
        sources = random_sources(rng, 16)
        target = pad([[*noisy(ids[-2::-1], rng), END] for ids in sources], PAD)
        logits, cache = model.forward(pad(sources, PAD), shifted_right(target, config.start_id))
        _, loss_cache = cross_entropy(logits, target, pad_id=PAD)
        model.zero_grad()
        model.backward(cross_entropy_backward(np.float32(1), loss_cache), cache)
        adam.step(0.005)
    return model


CASES = [("marian", search) for search in SEARCHES]
CASES += [(name, search) for name in MODELS if name != "marian" for search in OF_OTHERS]


@pytest.fixture(params=CASES, ids=", ".join)
def translator(request, tmp_path, monkeypatch):
    """The trained model of transformers with a setting of the search, saved in the folder, and the folder."""
    name, search = request.param
    compute_in_float64(monkeypatch)
    settings, special = MODELS[name]
    model, family = trained(name), FAMILIES.find(name)
    oracle = transformers.AutoModelForSeq2SeqLM.from_config(settings).double().eval()
    arrays = by_their_names(family, model.config, model.state_dict())
    state = {name: torch.tensor(array).double() for name, array in arrays.items()}
    oracle.load_state_dict(state, strict=False)
    oracle.tie_weights()
    ids = SPECIAL | {"decoder_start_token_id": settings.decoder_start_token_id}
    search = {**special, "max_length": 10, **SEARCHES[search]}
    oracle.generation_config = transformers.GenerationConfig(**ids, **search)
    oracle.save_pretrained(tmp_path)
    return oracle, tmp_path


def generated(row):
    """Return the ids of a generated translation, without the start symbol, the end symbol and padding."""
    ids = row[1:]
    return ids[: ids.index(END)] if END in ids else ids


def test_the_translations_of_many_sentences(translator):
    oracle, folder = translator
    model = load_folder(folder, np.float64).model
    sources = random_sources(np.random.default_rng(1), N_SENTENCES)
    padded = torch.tensor(pad(sources, PAD))
    expected = oracle.generate(padded, attention_mask=(padded != PAD).long()).tolist()
    expected = [generated(ids) for ids in expected]
    assert translate_ids(model, sources, **search_settings(folder, model.config)) == expected
    assert len({len(ids) for ids in expected}) > 3  # some end early, and the longest are cut
    assert len(set(map(tuple, expected))) > 30


def test_the_best_translations_and_their_scores(translator):
    oracle, folder = translator
    model, beam = load_folder(folder, np.float64).model, oracle.generation_config.num_beams or 1
    sources = random_sources(np.random.default_rng(2), N_SENTENCES)
    padded = torch.tensor(pad(sources, PAD))
    outputs = oracle.generate(
        padded,
        attention_mask=(padded != PAD).long(),
        num_return_sequences=beam,
        output_scores=True,
        return_dict_in_generate=True,
    )
    expected = [generated(ids) for ids in outputs.sequences.tolist()]
    parts = search_in_parts(model, sources, beam, **search_settings(folder, model.config))
    found = [each for part in parts for hypotheses in part for each in hypotheses]
    assert [each.ids for each in found] == expected
    if beam > 1:  # greedy search has no scores
        scores = outputs.sequences_scores.numpy()  # transformers adds in float32
        np.testing.assert_allclose([each.score for each in found], scores, rtol=1e-5)

    # the log-probability of each token, as the forward pass of transformers has it
    targets = [[*ids, END] for ids in expected]
    repeated = [ids for ids in sources for _ in range(beam)]
    target = torch.tensor(pad(targets, PAD))
    source = torch.tensor(pad(repeated, PAD))
    target_in = torch.tensor(shifted_right(target.numpy(), model.config.start_id))
    with torch.no_grad():
        logits = oracle(source, attention_mask=(source != PAD).long(), decoder_input_ids=target_in).logits
    log_p = torch.log_softmax(logits, -1).gather(-1, target[..., None])[..., 0].numpy()
    for each, row, ids in zip(score_ids(model, repeated, targets), log_p, targets, strict=True):
        np.testing.assert_allclose(each.log_probs, row[: len(ids)], atol=1e-10)
