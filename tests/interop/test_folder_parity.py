"""Folders that transformers wrote: logits, attention, loss and all gradients agree with transformers.

The configurations, the weights and the batches are random. In float64 the largest difference is 1e-10, from
files of any data type. In the families with rotary positions and in OPT, the RMS norm, the tables of the
rotary positions and the softmax of the attention that returns its weights are float32 even in a float64
model: they are replaced by the same formulas in float64.

The models as they stand agree to ROUNDING. In float64 this is the rounding of transformers alone, above all
in its RMS norms, since without its float32 parts the difference is 1e-10; it is largest in a gradient of a
Gemma 2, 1.15e-5. Of 308 decoders with such parts, 6 differ by more than 5e-6, and 3 with the attention that
transformers has by default, whose softmax is in float64, but which returns no weights. Where the logits
differ most in float32 (a Gemma 3, by 1.2e-5), those of transformers are 1.0e-5 from the logits in float64,
and ours 1.7e-6. Ours in float32 are at most OWN_ROUNDING from ours in float64 (5.5e-6 in an OLMo 2, else
below 5e-6).
"""

import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hugging_face_oracles import (
    IGNORED,
    LENGTH,
    SEEDS,
    expected_of,
    found_of,
    gradients,
    gradients_by_our_names,
    larger,
    random_encoder,
    save_oracle,
)
from refused import refused
from safetensors.numpy import load_file, save_file

import npformer
from npformer.interop import families, load_folder
from npformer.interop.families.settings_table import effective
from npformer.interop.settings_file import Settings
from npformer.models.registry import attention_layers
from npformer.pretrained import TextEncoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from gpt_oracles import FAMILIES as GPTS  # noqa: E402  it imports torch
from gpt_oracles import compute_in_float64, random_oracle  # noqa: E402  it stands below that line
from seq2seq_oracles import (  # noqa: E402  it imports torch
    MAPS,
    padded,
    random_bart,
    random_batch,
    random_marian,
    random_t5,
)
from seq2seq_oracles import compute_in_float64 as compute_others_in_float64  # noqa: E402  it stands below that line

pytestmark = pytest.mark.torch

ROUNDING, OWN_ROUNDING = 2e-5, 6e-6  # of transformers as it stands, and of ours in float32; see above


# ---------------------------------------------------------------------------------------------------------
# Random batches: what the oracle reads, what our model reads, and the targets


def batch_of_gpt(config, rng):
    ids = rng.integers(0, config.vocab_size, (2, 7))
    targets = np.full_like(ids, IGNORED)
    targets[:, :-1] = ids[:, 1:]
    return {"input_ids": ids}, (ids,), targets


def batch_of_bert(config, rng):
    ids, labels = (padded(rng.integers(config.vocab_size, size=(3, LENGTH)), config) for _ in range(2))
    labels[:, ::2] = config.pad_id  # only hidden tokens have a loss
    segment_ids = rng.integers(max(1, config.n_segments), size=ids.shape)
    theirs = {"input_ids": ids, "attention_mask": ids != config.pad_id}
    theirs |= {"token_type_ids": segment_ids} if config.n_segments else {}
    targets = np.where(labels == config.pad_id, IGNORED, labels)
    return theirs, (ids, segment_ids if config.n_segments else None), targets


class Family(NamedTuple):
    """How a random model and a random batch of a family are made, and the names of its attention weights."""

    oracle: Any
    batch: Any
    maps: dict
    noise: float = 0.3  # what is added to the initial values


SELF = {"self": "attentions"}
FAMILIES = {
    **{name: Family(partial(random_oracle, name), batch_of_gpt, SELF) for name in GPTS},
    "bert": Family(partial(random_encoder, "Bert", "ForMaskedLM"), batch_of_bert, SELF),
    "distilbert": Family(partial(random_encoder, "DistilBert", "ForMaskedLM"), batch_of_bert, SELF),
    "marian": Family(random_marian, random_batch, MAPS),
    "bart": Family(random_bart, random_batch, MAPS),
    # its scores are not divided by sqrt(K): with more noise they are so large that float32 is inexact
    "t5": Family(random_t5, random_batch, MAPS, noise=0.1),
    "mbart": Family(partial(random_bart, name="MBart"), random_batch, MAPS),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FAMILIES)
def test_logits_attention_loss_and_gradients(name, seed, dtype, tmp_path, monkeypatch):
    """In float32, what forward computes is compared."""
    family = FAMILIES[name]
    oracle = family.oracle(np.random.default_rng(seed))
    of_files = dtype if dtype == "float32" else None
    oracle = save_oracle(oracle, tmp_path, seed=seed, dtype=of_files, noise=family.noise)
    oracle = oracle.to(getattr(torch, dtype))
    if hasattr(oracle, "final_logits_bias"):
        oracle.final_logits_bias.requires_grad_()  # a buffer there, and a parameter here

    def both():
        """Return all arrays of our model and of the oracle."""
        loaded = load_folder(tmp_path, dtype)
        assert loaded.model.values.dtype == dtype
        theirs, ours, targets = family.batch(loaded.model.config, np.random.default_rng(seed))
        oracle.zero_grad()
        expected = expected_of(oracle, family.maps, targets, **theirs)
        found = found_of(loaded.model, family.maps, targets, *ours)
        if dtype == "float32":
            exact = found_of(load_folder(tmp_path, "float64").model, family.maps, targets, *ours)
            assert larger(OWN_ROUNDING, found, exact) == {}
            return found, expected
        grads, their_grads = gradients(loaded, oracle)
        return found | grads, expected | their_grads

    in_float64 = partial(compute_in_float64, family=name) if name in GPTS else compute_others_in_float64
    if dtype == "float64" and (name == "t5" or (name in GPTS and name != "gpt2")):
        assert larger(ROUNDING, *both()) == {}
        assert larger(1e-10, *both()) != {}  # otherwise the comparison below would patch needlessly
        in_float64(monkeypatch)
    assert larger(1e-10 if dtype == "float64" else ROUNDING, *both()) == {}


@pytest.mark.parametrize("name", GPTS)
def test_a_decoder_without_its_head(name, tmp_path, monkeypatch):
    """The files of LlamaModel and its like: what the last norm puts out, attention and gradients."""
    rng = np.random.default_rng(2)
    oracle = random_oracle(name, rng, tie_word_embeddings=False).base_model
    oracle = save_oracle(oracle, tmp_path, seed=3, dtype="float64")
    if name != "gpt2":
        compute_in_float64(monkeypatch, name)
    loaded = load_folder(tmp_path, np.float64)
    ids = rng.integers(0, loaded.model.config.vocab_size, (2, 7))
    outputs = oracle(torch.tensor(ids), output_attentions=True)
    ours, cache = loaded.model.forward(ids)
    gradient = rng.standard_normal(ours.shape)
    (outputs.last_hidden_state * torch.tensor(gradient)).sum().backward()
    loaded.model.backward(gradient, cache)
    found, expected = gradients(loaded, oracle)
    expected |= {"output": outputs.last_hidden_state.detach().numpy()}
    expected |= {"self": torch.stack(outputs.attentions).detach().numpy()}
    found |= {"output": ours, "self": np.stack(attention_layers(cache, "self"))}
    assert larger(1e-10, found, expected) == {}
    encoder = npformer.load(tmp_path, dtype="float64")
    assert type(encoder) is TextEncoder
    np.testing.assert_array_equal(encoder.hidden_states(ids)[-1], ours)
    with refused("reads from left to right"):
        encoder.embed("The king")


def test_a_decoder_with_a_head_that_npformer_has_not(tmp_path):
    transformers.LlamaForSequenceClassification(
        random_oracle("llama", np.random.default_rng(2), tie_word_embeddings=False).config
    ).save_pretrained(tmp_path)
    with refused("no tensor lm_head.weight: .*if it is a classifier, save its base_model"):
        load_folder(tmp_path)


def random_vit(rng):
    """Return a random small ViT with a classifier."""
    n_heads, patch = int(rng.integers(1, 5)), rng.integers(2, 4, 2)
    config = transformers.ViTConfig(
        hidden_size=n_heads * int(rng.integers(3, 7)),
        num_attention_heads=n_heads,
        num_hidden_layers=int(rng.integers(1, 4)),
        intermediate_size=int(rng.integers(5, 30)),
        hidden_act=str(rng.choice(["gelu", "gelu_new", "relu", "silu"])),
        layer_norm_eps=float(rng.choice([1e-12, 1e-5])),
        image_size=(patch * rng.integers(1, 4, 2)).tolist(),
        patch_size=patch.tolist(),
        num_channels=int(rng.choice([1, 3])),
        num_labels=int(rng.integers(2, 6)),
        attn_implementation="eager",
    )
    return transformers.ViTForImageClassification(config)


@pytest.mark.parametrize("has_head", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_images(seed, has_head, tmp_path, monkeypatch):
    """The logits or hidden states of a ViT, its attention, and the gradients of parameters and of pixels."""
    rng = np.random.default_rng(seed)
    oracle = random_vit(rng)
    oracle = save_oracle(oracle if has_head else oracle.vit, tmp_path, seed=seed)
    loaded = load_folder(tmp_path, np.float64)
    config = loaded.model.config
    images = rng.standard_normal((2, config.n_colours, *config.image_size))
    ours, cache = loaded.model.forward(images)
    gradient = rng.standard_normal(ours.shape)
    dimages = loaded.model.backward(gradient, cache)
    found = {name: p.grad for name, p in loaded.model.named_parameters()}
    found |= {"output": ours, "pixels": dimages, "self": np.stack(attention_layers(cache, "self"))}

    def expected():
        oracle.zero_grad()
        pixels = torch.tensor(images, requires_grad=True)
        outputs = oracle(pixels, output_attentions=True)
        output = outputs.logits if has_head else outputs.last_hidden_state
        (output * torch.tensor(gradient)).sum().backward()
        theirs = {name: p.grad.numpy() for name, p in in_files(oracle).items()}
        arrays = gradients_by_our_names(loaded.family, config, theirs)
        arrays |= {"output": output.detach().numpy(), "pixels": pixels.grad.numpy()}
        return arrays | {"self": torch.stack(outputs.attentions).detach().numpy()}

    assert larger(5e-6, found, expected()) == {}
    compute_others_in_float64(monkeypatch)
    assert larger(1e-10, found, expected()) == {}


def in_files(oracle):
    """Return the parameters of a ViT by the names of its files, which are those of older versions."""
    new = {"q_proj": "attention.query", "k_proj": "attention.key", "v_proj": "attention.value"}
    new |= {"o_proj": "output.dense", "mlp.fc1": "intermediate.dense", "mlp.fc2": "output.dense"}
    new |= {"layers.": "encoder.layer."}
    found = {}
    for name, parameter in oracle.named_parameters():
        for ours, theirs in new.items():
            name = name.replace(ours, theirs)
        found["vit." * (not name.startswith(("vit.", "classifier."))) + name] = parameter
    return {name: parameter for name, parameter in found.items() if parameter.grad is not None}


def drawn(random_oracle, is_tied):
    """Return the first random oracle whose output is tied, or is not."""
    oracles = (random_oracle(np.random.default_rng(seed)) for seed in range(20))
    return next(oracle for oracle in oracles if oracle.config.tie_word_embeddings == is_tied)


@pytest.mark.parametrize("name", ["marian", "bart", "mbart"])
def test_a_translator_without_its_head(name, tmp_path):
    """The files of MarianModel: the table of tokens is the output."""
    oracle = drawn(FAMILIES[name].oracle, is_tied=True).model
    oracle = save_oracle(oracle, tmp_path, seed=1, dtype="float64")
    model = load_folder(tmp_path, np.float64).model
    theirs, ours, _ = random_batch(model.config, np.random.default_rng(0))
    output = oracle(**{name: torch.tensor(x) for name, x in theirs.items()}).last_hidden_state
    logits = output @ oracle.decoder.embed_tokens.weight.T
    np.testing.assert_allclose(model(*ours), logits.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_a_translator_without_the_matrix_of_its_head_is_refused(tmp_path):
    save_oracle(drawn(random_marian, is_tied=False).model, tmp_path, seed=1)
    with refused("saved without its head .*are missing.*: save it with MarianMTModel"):
        load_folder(tmp_path)


def test_an_old_file_with_gamma_beta_a_pooler_and_copies_of_tied_tensors(tmp_path):
    """BertForPreTraining saves the pooler and the layer of next sentence prediction as well."""
    oracle = random_encoder("Bert", "ForPreTraining", np.random.default_rng(0))
    oracle = save_oracle(oracle, tmp_path, seed=1, dtype="float64")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert {"bert.pooler.dense.weight", "cls.seq_relationship.bias"} <= tensors.keys()
    renamed = {}
    for name, array in tensors.items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        renamed[name] = array
    assert sum(name.endswith(".gamma") for name in renamed) == 2 + 2 * oracle.config.num_hidden_layers
    copies = {
        "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].copy(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].copy(),
        "bert.embeddings.position_ids": np.arange(oracle.config.max_position_embeddings)[None],
    }
    save_file(renamed | copies, path)
    model = load_folder(tmp_path, np.float64).model
    theirs, ours, _ = batch_of_bert(model.config, np.random.default_rng(0))
    logits = oracle(**{name: torch.tensor(x) for name, x in theirs.items()}).prediction_logits
    np.testing.assert_allclose(model(*ours), logits.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("family", GPTS)
def test_the_settings_of_our_configuration_are_those_of_the_folder(tmp_path, family):
    random_oracle(family, np.random.default_rng(3)).save_pretrained(tmp_path)
    loaded = load_folder(tmp_path)
    theirs = json.loads((tmp_path / "config.json").read_text())
    ours = loaded.family.settings_of(loaded.model.config)
    dropouts = {name for name in ours if name.endswith(("pdrop", "dropout"))}
    width = theirs.get("n_inner") or 4 * theirs.get("n_embd", 0)
    theirs |= {"n_inner": width, "head_dim": ours.get("head_dim")}  # null in the file
    if family == "phi3":
        assert theirs["rope_parameters"].pop("partial_rotary_factor") == 1
    if family == "smollm3":  # the drawn list may be longer than the model
        theirs["no_rope_layers"] = theirs["no_rope_layers"][: theirs["num_hidden_layers"]]
    if family == "qwen3_moe":  # the name that published files have
        theirs["num_experts"] = theirs.pop("num_local_experts")
        theirs["mlp_only_layers"] = [i for i in theirs["mlp_only_layers"] if i < theirs["num_hidden_layers"]]
    assert {name: theirs[name] for name in ours.keys() - dropouts} == {
        name: ours[name] for name in ours.keys() - dropouts
    }


SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")


@pytest.mark.parametrize("name", families.FAMILIES.names())
def test_a_setting_that_a_file_lacks_has_the_default_of_transformers(name):
    """The tables of Llama and its relatives ask for the sizes."""
    theirs = transformers.AutoConfig.for_model(name).to_dict()
    needed = SIZES if name in GPTS and name not in ("gpt2", "opt", "gpt_neox") else ()
    config_of = families.FAMILIES.find(name).config_of
    least, whole = (
        config_of(Settings(values)) for values in ({each: theirs[each] for each in needed}, theirs)
    )
    differing = {each for each in whole.to_dict() if effective(least, each) != effective(whole, each)}
    assert differing == set()
