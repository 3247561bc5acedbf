"""npformer.load: names, folders and files, and the methods of the loaded translator."""

import numpy as np
import pytest
from hugging_face_folders import GPT2, gpt2_tensors, write_folder
from matplotlib.figure import Figure
from toy_pretrained import SENTENCE, toy_card, toy_checkpoint

import npformer
from npformer import UserError
from npformer.interop import load_folder
from npformer.pretrained import TextGenerator, Translator, save_pretrained, store
from npformer.storage.checkpoint import save_checkpoint


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Return a folder with a run, with the toy as the pretrained translator."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/toy").mkdir(parents=True)
    for name in ("last", "best"):
        save_checkpoint(toy_checkpoint(seed=int(name == "last")), f"runs/toy/{name}.safetensors")
    (tmp_path / "shelf").mkdir()
    monkeypatch.setattr(store, "FOLDER", tmp_path / "shelf")
    save_pretrained(toy_checkpoint(), "shelf/en-de.safetensors", toy_card(beam=3, length_penalty=0.8))
    return tmp_path


def weights(loaded):
    return np.concatenate([value.ravel() for value in loaded.model.state_dict().values()])


def test_a_name_a_file_a_run_and_a_checkpoint(place):
    shipped = npformer.load("en-de")
    assert isinstance(shipped, Translator)
    assert repr(shipped).startswith("<translator en-de (English to German): Transformer with ")
    assert shipped.card == toy_card(beam=3, length_penalty=0.8)
    assert np.array_equal(weights(npformer.load("shelf/en-de.safetensors")), weights(shipped))
    run = npformer.load("runs/toy")
    assert run.card is None
    assert np.array_equal(weights(npformer.load(place / "runs/toy/best.safetensors")), weights(run))
    last = npformer.load("runs/toy", last=True)
    assert np.array_equal(weights(npformer.load("runs/toy/last.safetensors")), weights(last))
    assert not np.array_equal(weights(last), weights(run))
    (place / "en-de").mkdir()  # a name has precedence over a folder
    assert npformer.load("en-de").card is not None
    (place / "runs/toy/best.safetensors").unlink()  # as in a run that was stopped before its first validation
    assert np.array_equal(weights(npformer.load("runs/toy")), weights(last))


@pytest.mark.parametrize(
    ("name", "last", "words"),
    [
        ("en-ed", False, "there is no model en-ed: did you mean en-de?"),
        ("nowhere", False, r"there is no model nowhere: .* npformer train .*Hugging.*\(en-de\)"),
        ("gone.safetensors", False, "there is no file gone.safetensors"),
        ("hub", False, r"config.json in hub has no model_type, .*: add the family of the model"),
        ("empty", False, "empty has neither the checkpoints of a run nor the config.json of a Hugging Face"),
        ("text.txt", False, "is not a complete safetensors file"),
        ("hub/model.safetensors", False, "hub/model.safetensors is a part of the .* folder hub: give the fo"),
        ("en-de", True, "is not the folder of a run"),
        ("runs/toy/best.safetensors", True, "is not the folder of a run"),
        ("hub", True, r"hub is a Hugging Face folder .* which has no checkpoints: give the"),
    ],
)
def test_invalid_names_are_refused(place, name, last, words):
    (place / "hub").mkdir()
    (place / "hub/config.json").write_text("{}")
    (place / "hub/model.safetensors").write_bytes(b"")
    (place / "empty").mkdir()
    (place / "text.txt").write_text("no model")
    with pytest.raises(UserError, match=words):
        npformer.load(name, last=last)


@pytest.mark.parametrize(
    "name", ["x.gguf", "x.onnx", "x.h5", "x.msgpack", "x.pt", "x.PTH", "x.ckpt", "x.bin"]
)
def test_files_of_other_programs_are_named(place, name):
    (place / "folder").mkdir()
    (place / "folder" / name).write_bytes(b"GGUF")
    for path in (f"folder/{name}", "folder"):
        with pytest.raises(
            UserError, match=rf"^folder/{name} is an? [\w ]+.*: (give|save) .*folder"
        ) as refused:
            npformer.load(path)
        assert "safetensors" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"base_model_name_or_path": "gpt2"}', "^adapter has an adapter of PEFT for 'gpt2', .*: merge them"),
        ("{}", "^adapter has an adapter of PEFT, and not the model itself: merge them"),
        ("[", "^adapter has an adapter of PEFT, and not the model itself: merge them"),
    ],
)
def test_an_adapter_is_no_model(place, content, words):
    (place / "adapter").mkdir()
    (place / "adapter/adapter_config.json").write_text(content)
    with pytest.raises(UserError, match=words):
        npformer.load("adapter")


def test_a_cache_has_the_model_in_a_folder_of_its_own(place):
    (place / "models--x/snapshots/abc").mkdir(parents=True)
    for name in ("models--x", "models--x/snapshots"):
        with pytest.raises(UserError, match=r"is a cache of Hugging Face, .*: give models--x/snapshots/abc$"):
            npformer.load(name)
    (place / "models--x/snapshots/abd").mkdir()
    with pytest.raises(UserError, match=r"give a folder below snapshots$"):
        npformer.load("models--x")


def test_a_model_is_loaded_by_its_name():
    with pytest.raises(
        UserError, match=r"^a model is loaded by its name, .* <translator en-de .*: give one of"
    ):
        npformer.load(npformer.load("en-de"))
    with pytest.raises(UserError, match=r"^a model is loaded by its name, .* and not by '': give one of"):
        npformer.load("")


def test_a_hugging_face_folder_is_a_language_model(place):
    write_folder(place / "hub", GPT2, gpt2_tensors())
    ids, calls = np.array([[3, 1, 4, 1, 5]]), []
    for dtype in ("float32", "float64"):
        loaded = npformer.load("hub", dtype=dtype, progress=lambda *numbers: calls.append(numbers))
        assert isinstance(loaded, TextGenerator)
        assert loaded.model.values.dtype == dtype
        assert np.array_equal(loaded.logits(ids), load_folder("hub", dtype).model(ids))
        total = calls[-1][1]
        assert len(calls) > 5
        assert calls[-1] == (total, total)
    assert loaded.attention(ids)["self"].shape == (2, 1, 2, 5, 5)
    for needs_tokens in (loaded.attention, lambda text: loaded.generate(text, 3)):
        with pytest.raises(UserError, match=r"^hub has no tokenizer\.json"):
            needs_tokens("a man")
    with pytest.raises(UserError, match="float16"):
        npformer.load("hub", dtype="float16")


def test_attention_holds_the_weights_of_a_forward_pass():
    loaded = npformer.load("en-de")
    found = loaded.attention(SENTENCE)
    assert found.kinds == ["encoder", "decoder", "cross"]
    longest = 2 * len(found.source_tokens) + 5  # the toy never ends a translation by itself
    assert found.translation == loaded.translate(SENTENCE, max_length=longest)
    s, t = len(found.source_tokens), len(found.target_tokens)
    shapes = {"encoder": (2, 2, s, s), "decoder": (2, 2, t, t), "cross": (2, 2, t, s)}
    assert {kind: weights.shape for kind, weights in found.weights.items()} == shapes
    for kind, weights in found.weights.items():
        assert np.allclose(weights.sum(-1), 1, atol=1e-5)
        assert [len(tokens) for tokens in found.tokens(kind)] == list(weights.shape[2:])
    assert found.source_tokens[-1] == "</S>"
    assert (found.target_tokens[0], found.predicted_tokens[-1]) == ("<S>", "</S>")
    assert np.array_equal(found.weights["cross"][1], found.cache.decoder.layers[1].cross.attention.weights[0])


def test_attention_is_drawn_and_invalid_arguments_are_refused():
    found = npformer.load("en-de").attention("a man")
    assert repr(found).startswith("<attention for 'a man' → ")
    assert len(repr(found)) < 300
    assert isinstance(found.plot(), Figure)
    assert isinstance(found.plot("encoder", layer=0, head=1), Figure)
    assert isinstance(found.plot_head("decoder", head=1), Figure)
    assert isinstance(found.plot_lines("encoder", token=found.source_tokens[0]), Figure)
    for arguments, words in (
        ({"kind": "sideways"}, "this model has no sideways: it has encoder, decoder, cross"),
        ({"layer": 2}, "layer is 2: there are 2 layers, counted from 0"),
        ({"head": -1}, "head is -1: there are 2 heads, counted from 0"),
        ({"head": "a"}, "head is 'a': there are 2 heads, counted from 0"),
        ({"layer": 0.5}, "layer is 0.5: there are 2 layers, counted from 0"),
        ({"kind": ["cross"]}, r"no attention of the kind \['cross'\]: it has encoder, decoder, cross"),
    ):
        for draw in (found.plot, found.plot_head, found.plot_lines):
            with pytest.raises(UserError, match=words):
                draw(**arguments)
    with pytest.raises(UserError, match="'zebra' is not a query of the encoder self-attention"):
        found.plot_lines("encoder", token="zebra")
