"""Weights that stay in their file until they are used: the same numbers, and a file that never changes."""

import copy
import mmap
import pickle
import re

import numpy as np
import pytest
from hugging_face_folders import GPT2, LLAMA, gpt2_tensors, llama_tensors, write_folder
from refused import refused
from safetensors.numpy import save

import npformer
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.interop import load_folder, mapped_tensors
from npformer.interop.mapped_tensors import map_tensor
from npformer.interop.tensor_files import stored_tensors
from npformer.training.optimizer import Adam

IDS = np.array([[1, 2, 3, 8]])


@pytest.fixture(autouse=True)
def _map_small_tensors(monkeypatch):
    monkeypatch.setattr(mapped_tensors, "LEAST", 1)


def is_mapped(array):
    """Return whether the numbers of an array are in a mapped file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", None), mmap.mmap)  # of a memoryview


@pytest.fixture
def folder(tmp_path):
    """Return a folder of a GPT-2, whose weights are stored as they are here."""
    return write_folder(tmp_path, GPT2, gpt2_tensors())


@pytest.fixture
def model(folder):
    """Return its model, whose weights are mapped."""
    return load_folder(folder).model


def plain_model(folder, monkeypatch):
    """Return the model of a folder, all of whose tensors are read."""
    with monkeypatch.context() as context:
        context.setattr(mapped_tensors, "LEAST", 1 << 60)
        model = load_folder(folder).model
    assert not any(is_mapped(p.value) for p in model.parameters())
    return model


def train(model):
    """Make a training step, and return the logits before it."""
    adam = Adam(model)
    model.zero_grad()
    logits, cache = model.forward(IDS)
    _, loss_cache = cross_entropy(logits, IDS, pad_id=None)
    model.backward(cross_entropy_backward(1, loss_cache), cache)
    adam.step(0.1)
    return logits


def assert_equal_states(one, other):
    one, other = one.state_dict(), other.state_dict()
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("n_shards", [1, 3])
def test_the_values_are_those_that_are_read(tmp_path, monkeypatch, n_shards):
    folder = write_folder(tmp_path, GPT2, gpt2_tensors(), n_shards=n_shards)
    model, read = load_folder(folder).model, plain_model(folder, monkeypatch)
    assert all(is_mapped(p.value) for p in model.parameters())
    assert_equal_states(model, read)
    np.testing.assert_array_equal(model(IDS), read(IDS))


def test_a_tied_table_is_one_map(model):
    assert model.output.weight is model.embedding.tokens.weight
    before = model(IDS)
    model.embedding.tokens.weight.value *= 2
    assert np.abs(model(IDS) - before).max() > 1e-3


def test_only_what_is_stored_as_it_is_here_is_mapped(tmp_path):
    """A Llama's linear maps are transposed, and its queries, keys and values are apart."""
    model = load_folder(write_folder(tmp_path, LLAMA, llama_tensors())).model
    mapped = {name for name, p in model.named_parameters() if is_mapped(p.value)}
    norms = {name for name in mapped if re.search(r"norm\d?\.gain$", name)}
    assert len(norms) == 2 * 2 + 1
    assert mapped - norms == {"embedding.tokens.weight"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.float16, np.float32, np.float64])
def test_a_tensor_of_another_dtype_is_read(tmp_path, stored, dtype):
    tensors = {name: tensor.astype(stored) for name, tensor in gpt2_tensors().items()}
    model = load_folder(write_folder(tmp_path, GPT2, tensors), dtype).model
    assert {is_mapped(p.value) for p in model.parameters()} == {stored == dtype}
    value = model.embedding.tokens.weight.value
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, tensors["transformer.wte.weight"].astype(dtype))


def test_a_tensor_that_begins_after_the_first_page(tmp_path):
    numbers = np.arange(2 * mmap.ALLOCATIONGRANULARITY, dtype=np.float32)
    (tmp_path / "model.safetensors").write_bytes(save({"a": numbers, "b": -numbers, "c": numbers[:10]}))
    tensors = stored_tensors(tmp_path)
    for name, expected in (("b", -numbers), ("c", numbers[:10])):
        mapped = map_tensor(tensors[name], np.float32)
        assert is_mapped(mapped)
        np.testing.assert_array_equal(mapped, expected)


@pytest.mark.parametrize("extra", range(5))
def test_numbers_that_are_not_aligned_are_read(folder, monkeypatch, extra):
    expected = plain_model(folder, monkeypatch)
    path = folder / "model.safetensors"
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = data[8:end].rstrip() + b" " * extra
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[end:])
    model = load_folder(folder).model
    assert {is_mapped(p.value) for p in model.parameters()} == {(8 + len(header)) % 4 == 0}
    assert_equal_states(model, expected)


def test_small_tensors_are_read(folder, monkeypatch):
    monkeypatch.undo()
    assert not any(is_mapped(p.value) for p in load_folder(folder).model.parameters())
    tensors = gpt2_tensors() | {"transformer.wpe.weight": np.ones((50_000, 6), np.float32)}  # 1.2 MB
    model = load_folder(write_folder(folder, GPT2 | {"n_positions": 50_000}, tensors)).model
    mapped = [name for name, p in model.named_parameters() if is_mapped(p.value)]
    assert mapped == ["embedding.positions.weight"]
    np.testing.assert_array_equal(model.embedding.tokens.weight.value, tensors["transformer.wte.weight"])


# --- the file stays as it is ---


def test_the_file_never_changes(folder, model):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    for parameter in model.parameters():
        parameter.value += 1
    assert path.read_bytes() == data
    train(model)
    model.load_state_dict({name: 0 * value for name, value in model.state_dict().items()})
    assert path.read_bytes() == data


def test_a_file_may_be_replaced(folder, model):
    """The map keeps the old file, as the model that was read kept its numbers."""
    before = model(IDS)
    (folder / "new").write_bytes(bytes(100))
    (folder / "new").replace(folder / "model.safetensors")
    np.testing.assert_array_equal(model(IDS), before)


# --- what needs the parameters in one array ---


def test_a_training_step_is_that_of_a_model_that_was_read(folder, model, monkeypatch):
    read = plain_model(folder, monkeypatch)
    np.testing.assert_array_equal(train(model), train(read))
    assert not any(is_mapped(p.value) for p in model.parameters())
    assert all(np.shares_memory(p.value, model.values) for p in model.parameters())
    np.testing.assert_array_equal(model.values, read.values)
    np.testing.assert_array_equal(model.grads, read.grads)


def test_a_model_computes_without_copying_its_weights(folder):
    loaded = npformer.load(folder)
    loaded.logits(IDS)
    loaded.attention(IDS)
    logits, cache = loaded.model.forward(IDS)
    loaded.model.backward(np.ones_like(logits), cache)
    loaded.model.decode_step(IDS[:, 0], 0, None)
    assert all(is_mapped(p.value) for p in loaded.model.parameters())
    assert all(p.grad.any() for p in loaded.model.parameters())


@pytest.mark.parametrize("change", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_independent(model, change):
    before = model(IDS)
    copied = change(model)
    np.testing.assert_array_equal(copied(IDS), before)
    train(copied)
    assert np.abs(copied(IDS) - before).max() > 1e-3
    np.testing.assert_array_equal(model(IDS), before)
    assert all(is_mapped(p.value) for p in model.parameters())


# --- files of strangers ---


def test_a_file_that_shrinks_after_its_header_was_read(folder, monkeypatch):
    path = folder / "model.safetensors"

    def shorten(tensor, dtype):
        path.write_bytes(path.read_bytes()[:-1])
        return map_tensor(tensor, dtype)

    monkeypatch.setattr("npformer.interop.folder.map_tensor", shorten)
    with refused(r"model.safetensors became shorter while it was read"):
        load_folder(folder)


def test_a_file_that_cannot_be_mapped_is_read(folder, monkeypatch):
    expected = plain_model(folder, monkeypatch)

    def fail(*arguments, **settings):
        raise OSError("No such device")

    with monkeypatch.context() as context:
        context.setattr(mapped_tensors.mmap, "mmap", fail)
        model = load_folder(folder).model
    assert not any(is_mapped(p.value) for p in model.parameters())
    assert_equal_states(model, expected)


@pytest.mark.parametrize("index", [0, 3, 53])
def test_numbers_that_are_not_finite(tmp_path, monkeypatch, index):
    monkeypatch.setattr(mapped_tensors, "BLOCK", 5)
    tensors = gpt2_tensors()
    tensors["transformer.wte.weight"].flat[index] = np.nan if index else -np.inf
    with refused(r"wte.weight in .* has numbers that are not finite"):
        load_folder(write_folder(tmp_path, GPT2, tensors))
