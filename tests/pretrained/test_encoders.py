"""BERTs without a head and classifiers, from folders: what they tell of a text, and what they refuse."""

import json
import shutil
import string

import numpy as np
import pytest
from family_models import random_model
from refused import refused

import npformer
from npformer.cli.main import main
from npformer.functional import softmax
from npformer.interop import export_folder
from npformer.models.bert import Bert, BertConfig
from npformer.pretrained import TextClassifier, TextEncoder
from npformer.pretrained.encoders import class_probabilities

tokenizers = pytest.importorskip("tokenizers")

HEADS = {"none": 2, "text classes": 3, "token classes": 3}
TEXT = "The king sleeps."
LABELS = ["bad", "fair", "good"]
# trained tokenizers differ from one run to the next, and so would the numbers of their texts
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *string.printable,
    *("##" + c for c in string.printable),
]
PIECES += ["the", "king", "sleeps", "queen", "is", "tired", "of", "long", "war", "no", "ask"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Write a folder with a random model for each head."""
    root = tmp_path_factory.mktemp("encoders")
    pieces = {piece: i for i, piece in enumerate(PIECES)}
    tokenizer = root / "tokenizer.json"
    tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]")).save(str(tokenizer))
    folders = {}
    for head, n_classes in HEADS.items():
        config = BertConfig(
            vocab_size=600, d_model=8, n_layers=2, n_heads=2, max_length=40, head=head, n_classes=n_classes
        )
        folder = export_folder(random_model(config, np.float64), root / head, "bert")
        shutil.copy(tokenizer, folder)
        settings = json.loads((folder / "config.json").read_text())
        if "id2label" in settings:
            settings["id2label"] = {str(index): label for index, label in enumerate(LABELS)}
        (folder / "config.json").write_text(json.dumps(settings))
        folders[head] = folder
    return folders


@pytest.mark.parametrize("head", HEADS)
def test_attention_hidden_states_and_a_page(folders, head):
    loaded = npformer.load(folders[head], dtype="float64")
    assert type(loaded) is (TextEncoder if head == "none" else TextClassifier)
    n_tokens = len(loaded.tokenizer.encode(TEXT).ids)
    assert loaded.attention(TEXT).weights["self"].shape == (2, 2, n_tokens, n_tokens)
    states = loaded.hidden_states(TEXT)
    assert states.shape == (3, n_tokens, 8)
    ids = np.array([loaded.tokenizer.encode(TEXT).ids])
    encoder = Bert(loaded.model.config.replace(head="none"), dtype=np.float64)
    state = loaded.model.state_dict()
    encoder.load_state_dict({name: value for name, value in state.items() if not name.startswith("head.")})
    np.testing.assert_array_equal(states[-1], encoder(ids)[0])
    np.testing.assert_array_equal(loaded.hidden_states(ids)[:, 0], states)
    page = loaded.explore(TEXT)
    assert "head" in page.html if head == "text classes" else page.html
    with refused("leave out the target"):
        loaded.explore(TEXT, "The king wakes.")


@pytest.mark.parametrize("head", ["text classes", "token classes"])
def test_the_classes_and_what_speaks_for_them(folders, head, capsys):
    loaded = npformer.load(folders[head], dtype="float64")
    ids = [loaded.tokenizer.encode(TEXT).ids]
    p = softmax(loaded.logits(ids))[0][0]
    found = loaded.classify(TEXT)
    if head == "token classes":
        pieces, classes = zip(*found, strict=True)
        assert list(pieces) == loaded.tokenizer.encode(TEXT).pieces
        found, p = classes[4], p[4]
    assert found == sorted(zip(LABELS, p.tolist(), strict=True), key=lambda pair: -pair[1])
    place = {"position": 4} if head == "token classes" else {}
    saliency = loaded.saliency(TEXT, target="fair", tolerance=1e-3, most_points=4000, **place)
    assert saliency.value == pytest.approx(np.log(dict(found)["fair"]))
    assert abs(saliency.gap) < 1e-3
    assert saliency.explained == "fair"
    assert loaded.saliency(TEXT, method="gradient", **place).explained == found[0].label
    with refused("'god' is not a class of this model: did you mean good"):
        loaded.saliency(TEXT, target="god")
    with refused("position"):
        loaded.saliency(TEXT, position=99)
    assert main(["gradcheck", "--model", str(folders[head]), TEXT, "--json"]) == 0
    assert max(row["error"] for row in json.loads(capsys.readouterr().out)) > 0  # there is a loss


def test_what_needs_a_head_that_is_missing_is_refused(folders, capsys):
    for head, noun in (("none", "text encoder without a head"), ("text classes", "classifier")):
        for command, work in {
            "fill": "fill gaps",
            "generate": "continue a text",
            "translate": "translate",
            "lens": "predict tokens",
        }.items():
            assert main([command, "--model", str(folders[head]), TEXT]) == 2
            assert f"is a {noun}, which cannot {work}" in capsys.readouterr().err
    encoder = npformer.load(folders["none"])
    for method in (encoder.logits, encoder.saliency):
        with refused("is a text encoder without a head, which (cannot|predicts)"):
            method(TEXT)
    assert main(["gradcheck", "--model", str(folders["none"]), TEXT]) == 2
    assert "there is no loss to check" in capsys.readouterr().err


def of_sentences(folder, pooling, *, kinds=("Transformer", "Pooling", "Normalize"), **files):
    """Write the files of sentence-transformers into a folder."""
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": str(i)} for i, kind in enumerate(kinds)
    ]
    (folder / "1").mkdir(exist_ok=True)
    for name, content in {"modules": modules, "1/config": pooling, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


OTHERS = ["A queen is tired of the long war.", "No."]


@pytest.mark.parametrize("mode", ["mean", "cls"])
def test_vectors_of_texts_and_why_two_are_similar(folders, tmp_path, mode):
    folder = shutil.copytree(folders["none"], tmp_path / "sentences")
    names = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
    of_sentences(folder, {name: name == names[mode] for name in names.values()})
    loaded = npformer.load(folder, dtype="float64")
    states = loaded.hidden_states(TEXT)[-1]
    y = states.mean(0) if mode == "mean" else states[0]
    np.testing.assert_allclose(loaded.embed([*OTHERS, TEXT])[2], y / np.linalg.norm(y), atol=1e-14)
    np.testing.assert_allclose(loaded.embed(TEXT), y / np.linalg.norm(y), atol=1e-14)
    alone = npformer.load(folders["none"], dtype="float64")
    np.testing.assert_allclose(alone.embed(TEXT, pooling=mode), y, atol=1e-14)
    assert alone.embed([], pooling=mode).shape == (0, 8)
    with refused("has no modules.json, .*: give pooling"):
        alone.embed(TEXT)

    found = loaded.saliency(TEXT, OTHERS[0], tolerance=1e-6, most_points=4000)
    assert found.value == pytest.approx(loaded.similarity(TEXT, OTHERS[0]), abs=1e-12)
    assert abs(found.value - found.baseline) > 1e-3
    assert abs(found.gap) < 1e-6
    assert found.table().startswith("similarity")


def test_what_a_folder_of_sentence_transformers_says(folders, tmp_path):
    folder = shutil.copytree(folders["none"], tmp_path / "sentences")
    mean = {"pooling_mode": "mean"}
    of_sentences(
        folder,
        mean,
        kinds=("Transformer", "Pooling"),
        sentence_bert_config={"max_seq_length": 6, "do_lower_case": True},
        config_sentence_transformers={"prompts": {"query": "ask "}, "default_prompt_name": "query"},
    )
    loaded, plain = npformer.load(folder), npformer.load(folders["none"])
    np.testing.assert_array_equal(loaded.embed("No"), plain.embed("ask no", pooling="mean"))
    with refused("and the model reads 6 at most"):
        loaded.embed(TEXT)
    for pooling, kinds, sentence in (
        ({"pooling_mode_max_tokens": True}, ("Transformer", "Pooling"), "asks for pooling_mode_max_tokens"),
        ({}, ("Transformer", "Pooling"), "asks for no pooling"),
        (mean, ("Transformer", "Pooling", "Dense"), "asks for Transformer, Pooling, Dense"),
        ([], ("Transformer", "Pooling"), "not a JSON object"),
    ):
        of_sentences(folder, pooling, kinds=kinds)
        with refused(sentence):
            npformer.load(folder).embed(TEXT)


def test_a_mask_takes_the_place_of_the_id_of_padding(folders):
    loaded = npformer.load(folders["token classes"], dtype="float64")
    ids = np.array([[2, 9, 0, 3]])  # 0 is the id of padding
    everywhere = loaded.logits(ids, mask=np.ones((1, 4), bool))
    assert np.abs(everywhere - loaded.logits(ids)).max() > 1e-3
    np.testing.assert_array_equal(loaded.logits(ids, mask=ids != 0), loaded.logits(ids))
    with refused(r"mask has shape \(1, 3\) and dtype bool: give a bool for each of the ids \(1, 4\)"):
        loaded.logits(ids, mask=np.ones((1, 3), bool))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, "id2label in .* does not name the classes 0 .. 1"),
        ({"id2label": {"0": "a", "1": 2}}, "id2label in .* does not name the classes 0 .. 1"),
        ({"problem_type": "regression"}, "problem_type is 'regression' in .* supports only 'single_label"),
        ({"problem_type": "multi_label_classification"}, "supports only 'single_label_classification'"),
    ],
)
def test_classes_that_are_no_names_or_have_no_probabilities(folders, tmp_path, changes, words):
    folder = shutil.copytree(folders["text classes"], tmp_path / "damaged")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | changes))
    with refused(words):
        npformer.load(folder)


GRADIENT = {"method": "gradient", "tolerance": -1}


@pytest.mark.parametrize(
    ("head", "call", "words"),
    [
        ("text classes", lambda loaded: loaded.saliency(TEXT, target=1), "the text is 1: give a string"),
        ("none", lambda loaded: loaded.saliency(TEXT, ["No."], pooling="cls"), "the text is .*: give a str"),
        ("text classes", lambda loaded: loaded.saliency(TEXT, **GRADIENT), "tolerance is -1 and"),
        ("none", lambda loaded: loaded.saliency(TEXT, "No.", pooling="cls", **GRADIENT), "tolerance is -1"),
        ("none", lambda loaded: loaded.saliency(TEXT, "No.", tolerence=1), "'tolerence': did you mean tol"),
        ("text classes", lambda loaded: class_probabilities(np.ones(1), ["good"]), "one class, whose"),
    ],
)
def test_what_is_refused(folders, head, call, words):
    with refused(words):
        call(npformer.load(folders[head]))
