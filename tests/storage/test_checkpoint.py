"""Checkpoints: equal bytes for equal states, detection of altered bytes, and safety on a full disk."""

import dataclasses
import math

import numpy as np
import pytest
from safetensors import numpy as safetensors
from toy_pretrained import checkpoint_of
from training_worker import tiny_dataset, tiny_model, tiny_training

from npformer import Transformer, UserError
from npformer.storage import checkpoint
from npformer.storage.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from npformer.storage.checksummed import checksummed_bytes, read_checksummed


def make_checkpoint(step=3, seed=0, **changes):
    dataset = tiny_dataset()
    model = Transformer(tiny_model(dataset, **changes), rng=np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    m, v = rng.random((2, model.values.size), dtype=np.float32)
    codecs = {"source": dataset.source.to_json(), "target": dataset.target.to_json()}
    return checkpoint_of(
        model,
        "transformer",
        codecs,
        step=step,
        best_loss=1.25,
        training_settings=tiny_training().to_dict(),
        dataset=dataset.description,
        fingerprint=dataset.fingerprint,
        m=m,
        v=v,
    )


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "last.safetensors"
    save_checkpoint(make_checkpoint(), path)
    return path


def assert_equal(one, other):
    for field in dataclasses.fields(Checkpoint):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "parameters":
            assert a.keys() == b.keys()
            assert all(np.array_equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)
        elif field.name in ("m", "v"):
            assert np.array_equal(a, b)
        elif field.compare:
            assert a == b, field.name


@pytest.mark.parametrize("changes", [{}, {"tied": "none", "mask_fill": -1e9}, {"positions": "learned"}])
def test_a_saved_checkpoint_loads_unchanged(tmp_path, changes):
    saved = make_checkpoint(**changes)
    save_checkpoint(saved, tmp_path / "x.safetensors")
    loaded = load_checkpoint(tmp_path / "x.safetensors")
    assert_equal(loaded, saved)
    assert loaded.model_settings["mask_fill"] == changes.get("mask_fill", -math.inf)


def test_the_same_state_gives_the_same_bytes_that_any_safetensors_reader_reads(tmp_path, path):
    save_checkpoint(make_checkpoint(), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    tensors = safetensors.load_file(path)
    name = "source.tokens.weight"
    assert np.array_equal(tensors[name], make_checkpoint().parameters[name])


def test_an_altered_byte_and_a_truncation_have_a_message_of_their_own(path):
    data = path.read_bytes()
    for place in (9, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(UserError, match="altered"):
            load_checkpoint(path)
        path.write_bytes(data[:place])
        with pytest.raises(UserError, match=r"not a complete safetensors file .* cut short"):
            load_checkpoint(path)
    path.write_bytes(data + b"x")
    with pytest.raises(UserError, match="altered"):
        load_checkpoint(path)


def test_files_of_other_kinds(tmp_path, path, monkeypatch):
    with pytest.raises(UserError, match=r"there is no checkpoint .*nowhere"):
        load_checkpoint(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is a folder"):
        load_checkpoint(tmp_path)
    other = tmp_path / "other"
    other.write_text("The animal did not cross the street.")
    with pytest.raises(UserError, match="or is of another kind"):
        load_checkpoint(other)
    for metadata in (None, {"format": "pt"}, {"npformer": "{}"}):
        safetensors.save_file({"x": np.ones(3)}, other, metadata)
        with pytest.raises(UserError, match="not a checkpoint of npformer"):
            load_checkpoint(other)
    header = b'{"__metadata__": null, "x": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}'
    other.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with pytest.raises(UserError, match="not a checkpoint of npformer"):
        load_checkpoint(other)
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    save_checkpoint(make_checkpoint(), path)
    assert load_checkpoint(path).step == 3
    monkeypatch.setattr(checkpoint, "FORMAT", 1)
    with pytest.raises(UserError, match=r"has format 2, and this npformer reads up to 1: install a newer"):
        load_checkpoint(path)


def test_a_checkpoint_without_a_version_is_one_of_version_1(path):
    tensors, settings = read_checksummed(path)
    del settings["sha256"], settings["format"]
    path.write_bytes(checksummed_bytes(tensors, settings))
    assert_equal(load_checkpoint(path), make_checkpoint())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"m": np.zeros(3, np.float32)}, r"adam\.m in .* has shape \(3,\), not \("),
        ({"v": None}, "has only one of Adam's two moments"),
        ({"m": None}, "has only one of Adam's two moments"),
        ({"v": lambda v: -v}, r"adam\.v in .* has numbers below 0"),
        ({"m": lambda m: m * np.float32(np.nan)}, r"adam\.m in .* has numbers that are not finite"),
        ({"m": lambda m: m.astype(np.int32)}, r"adam\.m in .* has the type int32"),
        ({"parameters": {}}, r"adam\.m in .* has shape"),
        ({"best_loss": math.inf}, "'best_loss' in .* is not finite"),
        ({"step": -1}, "'step' of .* is -1, not 0 to"),
        ({"workers": 10**6}, "'workers' of .* is 1000000, not 1 to 10000"),
        ({"threads": "all"}, "the entry 'threads' of .* is 'all', not a whole number or null"),
    ],
)
def test_impossible_content_is_refused(path, changes, message):
    saved = make_checkpoint()
    changes = {
        name: value(getattr(saved, name)) if callable(value) else value for name, value in changes.items()
    }
    save_checkpoint(dataclasses.replace(saved, **changes), path)
    with pytest.raises(UserError, match=message):
        load_checkpoint(path)


# --- reading without training ---
