"""The data of a live page: the parameters by their names in the cache tree, the settings and the example."""

import numpy as np
import pytest
from page_numbers import page_numbers
from tiny_runs import bert_checkpoint, gpt_checkpoint
from toy_pretrained import checkpoint_of, toy_checkpoint
from word_translator import SOURCE, TARGET, word_model, word_translator

import npformer
from npformer.data import END
from npformer.data.dataset import task_dataset
from npformer.data.text_codecs import ByteCodec
from npformer.errors import UserError
from npformer.explorer import explore, model_data
from npformer.explorer.model_data import MOST_TOKENS, why_not_live
from npformer.generation.batch_decode import translate_ids
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.models.universal import UniversalConfig, UniversalTransformer
from npformer.pretrained import Translator
from npformer.storage.checkpoint import save_checkpoint

DOG = "the dog is tired"


def in_cache(cache, name):
    """Return the array that stands under the name of a parameter in the cache tree."""
    for part in name.split("."):
        if part.isdigit():
            cache = cache[int(part)]
        elif part == "weight" and not hasattr(cache, part):
            cache = cache.table
        else:
            cache = getattr(cache, part)
    return cache


CHANGES = [
    {"norm": "pre", "final_norm": True},
    {"norm": "pre", "final_norm": True, "fused_projections": True, "tied": "none"},
    {"norm": "pre", "final_norm": True, "positions": "learned", "attention_bias": False},
]


@pytest.mark.parametrize("changes", [*CHANGES, {"norm": "n-dan"}, {"positions": "relative"}])
def test_the_page_carries_every_parameter_in_order_under_its_name_in_the_cache_tree(changes):
    loaded = word_translator(**changes)
    numbers = page_numbers(explore(loaded, DOG))
    positions = numbers.pop("positions")
    np.testing.assert_array_equal(positions, getattr(loaded.model.source.positions, "table", np.zeros(0)))
    assert len(numbers) == len(loaded.model.parameters())  # no name occurs twice
    for value, parameter in zip(numbers.values(), loaded.model.parameters(), strict=True):
        np.testing.assert_array_equal(value, parameter.value)
    if changes in CHANGES:
        _, cache = loaded.model.forward(np.array([[4, 5, 3]]), np.array([[2, 6]]))
        not_there = (".bias", "positions.weight")
        names = [name for name in numbers if not name.endswith(not_there) and not name.startswith("output")]
        assert len(names) > 20
        for name in names:
            np.testing.assert_array_equal(in_cache(cache, name), numbers[name])


def test_the_settings_are_plain_numbers():
    config = explore(word_translator(dropout=0.2), DOG).head["config"]
    assert (config["d_head"], config["d_value"], config["embedding_dropout"]) == (4, 4, 0.2)
    assert config["mask_fill"] == "-Infinity"
    assert config["n_layers"] == 2
    other = word_translator(mask_fill=-1e9, masking_how="add", d_head=6, d_value=5, embedding_dropout=0.5)
    config = explore(other, DOG).head["config"]
    assert (config["d_head"], config["d_value"], config["embedding_dropout"]) == (6, 5, 0.5)
    assert config["mask_fill"] == -1e9


@pytest.mark.parametrize(
    ("changes", "key", "file"),
    [
        ({"norm": "post"}, "residual", "functional/residual.py"),
        ({"norm": "pre", "final_norm": True}, "residual", "models/transformer/pre_norm.py"),
        ({"norm": "-dan"}, "residual", "models/transformer/sequences.py"),
        ({"tied": "none"}, "logits", "nn/linear.py"),
        ({"tied": "output"}, "logits", "nn/embedding.py"),
    ],
)
def test_the_source_lines_are_those_of_the_model(changes, key, file):
    assert explore(word_translator(**changes), DOG).head["lines"][key]["file"] == f"npformer/{file}"


def test_the_example_is_decoded_as_the_page_decodes():
    """With a beam, the page would show a translation that it does not find itself."""
    for seed in range(6):
        loaded = Translator.of_codecs(word_model(seed), SOURCE, TARGET)
        found = explore(loaded, DOG).head["example"]["target_ids"]
        greedy, beam = (
            translate_ids(loaded.model, [loaded.source_ids(DOG)], max_length=15, **search)[0]
            for search in ({}, loaded.search_settings())
        )
        assert found == [*greedy, END]
        if greedy != beam:
            break
    else:
        raise AssertionError("no model tells the two searches apart")


def test_the_example_is_the_translation_of_the_model():
    loaded = word_translator()
    example = explore(loaded, DOG).head["example"]
    assert example["source"] == DOG
    assert example["source_ids"] == [*SOURCE.encode(DOG), END]
    assert example["target_ids"][-1] == END
    assert example["target"] == TARGET.decode(example["target_ids"])
    predicted = loaded.attention(DOG, beam=1).predicted_tokens
    assert predicted == [TARGET.tokens[index] for index in example["target_ids"]]
    example = explore(loaded, DOG, "Le chien est large").head["example"]
    assert example["target"] == "Le chien est large"
    assert example["target_ids"] == [*TARGET.encode("le chien est large"), END]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("", None, "the sentence '' is empty: write at least one word"),
        (" \n", None, r"the sentence ' \\n' is empty"),
        (DOG, " ", "the translation ' ' is empty"),
        (DOG, "le chein", "the model does not know 'chein' of the translation"),
        (
            "the " * MOST_TOKENS,
            None,
            "the sentence has 49 tokens, its end included, and a page has room for 48",
        ),
        (DOG, "le " * 100, "the translation has 101 tokens"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(source, target, message):
    with pytest.raises(UserError, match=message):
        explore(word_translator(), source, target)


def gpt_of_bytes():
    """Return the checkpoint of a GPT that reads bytes."""
    model = GPT(GPTConfig(vocab_size=256, d_model=8, n_layers=1, n_heads=2, context=12))
    return checkpoint_of(model, "gpt", {"text": ByteCodec().to_json()})


def test_which_models_are_live(tmp_path, monkeypatch):
    universal = UniversalTransformer(UniversalConfig(**word_model().config.to_dict()))
    models = {"universal": Translator("x", universal, lambda: None), "words": word_translator()}
    models["rotary"] = word_translator(positions="rotary")
    made = {"gpt": gpt_checkpoint, "bytes": gpt_of_bytes, "bert": bert_checkpoint, "toy": toy_checkpoint}
    for name, make in made.items():
        save_checkpoint(make(), tmp_path / f"{name}.safetensors")
        models[name] = npformer.load(tmp_path / f"{name}.safetensors")
    computes = "a live page computes an encoder-decoder Transformer or a GPT, and this is a"
    reads = "a live page reads whole words or characters, and the tokens of this model are"
    assert {name: why_not_live(model) for name, model in models.items()} == {
        "universal": f"{computes} universal transformer",
        "words": None,
        "rotary": "a live page computes rotary positions in a GPT only, and this is a translator",
        "gpt": None,
        "bytes": f"{reads} bytes",
        "bert": f"{computes} bert",
        "toy": f"{reads} subwords",
    }
    monkeypatch.setattr(model_data, "LARGEST_LIVE", 2000)
    count = f"{word_model().count_parameters():,}"
    assert why_not_live(models["words"]) == f"the model has {count} parameters, and a live page at most 2,000"


def test_the_page_of_the_tour_has_at_most_4_mb():
    """An untrained translator of the tour's architecture, with more words than its corpus."""
    dataset = task_dataset(vocab=604)  # data/corpus/test_corpus.py: fewer than 600 words of a language
    model = Transformer(TransformerConfig.architecture("small", **dataset.sizes))
    loaded = Translator.of_codecs(model, dataset.source, dataset.target)
    assert len(explore(loaded, "1 2 3", "3 2 1").html.encode()) < 4e6
