"""Marian of Hugging Face as oracle: folders that it saved, and what their models compute, here and there."""

import numpy as np
import pytest
from hugging_face_oracles import SEEDS, by_their_names, expected_of, gradients, larger, save_oracle

from npformer.data import pad
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.generation.batch_decode import translate_ids
from npformer.interop import load_folder
from npformer.interop.families.marian import MARIAN
from npformer.interop.generation_file import search_settings
from npformer.interop.settings_file import Settings
from npformer.models.registry import attention_layers
from npformer.models.transformer import Transformer, shifted_right
from npformer.training.optimizer import Adam

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

END, LENGTH = 0, 9
KINDS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def random_config(seed):
    """Return a random small configuration of Hugging Face: widths, heads, layers, ties and so on."""
    rng = np.random.default_rng(seed)
    # the norm of two numbers is 1 and -1, whatever they are, and leaves gradients that are only rounding
    n_heads, d_head = int(rng.integers(1, 5)), 2 * int(rng.integers(2, 5))
    is_shared = bool(rng.integers(2))
    vocab_size, decoder_vocab_size = (int(n) for n in rng.integers(12, 20, 2))
    pad_id, another_id = (int(n) for n in rng.choice(range(1, 12), 2, replace=False))
    n_layers, d_ff = (int(n) for n in rng.integers(1, 4, 2))
    return transformers.MarianConfig(
        vocab_size=vocab_size,
        decoder_vocab_size=vocab_size if is_shared else decoder_vocab_size,
        d_model=n_heads * d_head,
        encoder_layers=n_layers,
        decoder_layers=n_layers,
        encoder_attention_heads=n_heads,
        decoder_attention_heads=n_heads,
        encoder_ffn_dim=8 * d_ff + 1,
        decoder_ffn_dim=8 * d_ff + 1,
        max_position_embeddings=int(rng.integers(LENGTH, 30)),
        activation_function=str(rng.choice(["swish", "gelu", "relu", "gelu_new", "silu"])),
        scale_embedding=bool(rng.integers(2)),
        share_encoder_decoder_embeddings=is_shared,
        tie_word_embeddings=is_shared or bool(rng.integers(2)),
        pad_token_id=pad_id,
        eos_token_id=END,
        decoder_start_token_id=int(rng.choice([pad_id, pad_id, another_id])),
        attn_implementation="eager",
    )


def random_batch(config, seed):
    """Return source, target_in and labels (B, T), with padding at the end of some sentences."""
    rng = np.random.default_rng(seed)
    vocabs = config.source_vocab, config.target_vocab
    source, target = (rng.integers(END, size, (3, LENGTH - 2)) for size in vocabs)
    for ids in (source, target):
        ids[ids == config.pad_id] = END
        ids[1, 4:] = ids[2, 6:] = config.pad_id
    start = np.full((3, 1), config.start_id)
    return source, np.concatenate([start, target[:, :-1]], 1), target


def outputs_of(oracle, config, batch):
    """Return the logits, the attention weights and the loss of the oracle, which gets its gradients."""
    source, target_in, labels = batch
    is_token = target_in != config.pad_id
    is_token[:, 0] = True
    inputs = {"input_ids": source, "attention_mask": source != config.pad_id}
    inputs |= {"decoder_input_ids": target_in, "decoder_attention_mask": is_token}
    return expected_of(oracle, KINDS, labels, config.pad_id, **inputs)


def found_of(model, batch):
    """Return what outputs_of returns, computed here, and leave the gradients in the model."""
    source, target_in, labels = batch
    logits, cache = model.forward(source, target_in)
    loss, loss_cache = cross_entropy(logits, labels, pad_id=model.config.pad_id)
    model.backward(cross_entropy_backward(logits.dtype.type(1), loss_cache), cache)
    maps = {kind: np.stack(attention_layers(cache, kind)) for kind in KINDS}
    return {"logits": logits, "loss": loss, **maps}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", SEEDS)
def test_logits_attention_loss_and_gradients(seed, dtype, tmp_path):
    """In float64 all agree to 1e-10, from files of any dtype; in float32, what forward computes, to 1e-5.

    The table of tokens has the attribute padding_idx in transformers, which leaves the embedding of padding
    out of its gradient. But a decoder starts with the id of padding, so that would not be the gradient.
    """
    stored = dtype if dtype == "float32" else None
    oracle = transformers.MarianMTModel(random_config(seed))
    oracle = save_oracle(oracle, tmp_path, seed=seed, dtype=stored).to(getattr(torch, dtype))
    oracle.final_logits_bias.requires_grad_()  # a buffer there, and a parameter here
    for module in oracle.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None
    loaded = load_folder(tmp_path, dtype)
    assert loaded.model.values.dtype == dtype
    batch = random_batch(loaded.model.config, seed)
    found, expected = found_of(loaded.model, batch), outputs_of(oracle, loaded.model.config, batch)
    assert larger(1e-10 if dtype == "float64" else 1e-5, found, expected) == {}
    assert dtype == "float32" or larger(1e-10, *gradients(loaded, oracle)) == {}


# --- Translations ---

PAD, VOCABULARY = 11, 16
SIZES = {"layers": 1, "attention_heads": 3, "ffn_dim": 40}
SPECIAL = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD}
TRAINED = transformers.MarianConfig(
    vocab_size=VOCABULARY,
    d_model=24,
    max_position_embeddings=24,
    activation_function="swish",
    scale_embedding=True,
    **{f"{side}_{name}": size for name, size in SIZES.items() for side in ("encoder", "decoder")},
    **SPECIAL,
)
N_SENTENCES = 50
SEARCHES = {
    "greedy": {},
    "beam 4": {"num_beams": 4},
    "the settings of the opus-mt translators": {"num_beams": 4, "renormalize_logits": True},
    "no length penalty": {"num_beams": 3, "length_penalty": 0.0},
    "a large length penalty": {"num_beams": 6, "length_penalty": 2.0, "min_length": 5},
}


def random_sources(rng, count):
    """Return sentences of 1 to 12 tokens and the end symbol."""
    return [[*rng.integers(1, PAD, rng.integers(1, 13)).tolist(), END] for _ in range(count)]


def noisy(ids, rng):
    """Return ids without some of them, and with others in place of some."""
    return [int(rng.integers(1, PAD)) if rng.random() < 0.3 else i for i in ids if rng.random() < 0.8]


@pytest.fixture(scope="module")
def trained():
    """A model that learned a little of writing a sentence backwards, with noise, so that it is never sure."""
    config = MARIAN.config_of(Settings(TRAINED.to_dict()))
    rng = np.random.default_rng(0)
    model = Transformer(config, rng=rng)
    adam = Adam(model)
    for _ in range(250):
        sources = random_sources(rng, 16)
        target = pad([[*noisy(ids[-2::-1], rng), END] for ids in sources], PAD)
        logits, cache = model.forward(pad(sources, PAD), shifted_right(target, PAD))
        _, loss_cache = cross_entropy(logits, target, pad_id=PAD)
        model.zero_grad()
        model.backward(cross_entropy_backward(np.float32(1), loss_cache), cache)
        adam.step(0.005)
    return model


@pytest.fixture(params=SEARCHES.values(), ids=SEARCHES)
def translator(request, trained, tmp_path):
    """The trained model of transformers with a setting of the search, saved in the folder, and the folder."""
    oracle = transformers.MarianMTModel(TRAINED).double().eval()
    arrays = by_their_names(MARIAN, trained.config, trained.state_dict())
    state = {name: torch.tensor(array).double() for name, array in arrays.items()}
    oracle.load_state_dict(state, strict=False)
    oracle.tie_weights()
    search = {"forced_eos_token_id": END, "bad_words_ids": [[PAD]], "max_length": 10, **request.param}
    oracle.generation_config = transformers.GenerationConfig(**SPECIAL, **search)
    oracle.save_pretrained(tmp_path)
    return oracle, tmp_path


def test_the_translations_of_many_sentences(translator):
    oracle, folder = translator
    model = load_folder(folder, np.float64).model
    sources = random_sources(np.random.default_rng(1), N_SENTENCES)
    padded = torch.tensor(pad(sources, PAD))
    expected = oracle.generate(padded, attention_mask=(padded != PAD).long()).tolist()
    expected = [ids[1 : ids.index(END)] for ids in expected]
    assert translate_ids(model, sources, **search_settings(folder, model.config)) == expected
    assert len({len(ids) for ids in expected}) > 4  # some end early, and the longest are cut
    assert len(set(map(tuple, expected))) > 30
