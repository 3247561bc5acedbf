"""Training that begins with the weights of a trained model, and what is refused in one sentence."""

import numpy as np
import pytest
from hugging_face_folders import GPT2, gpt2_tensors, write_folder
from training_runs import assert_same, stop_after
from training_worker import tiny_dataset, tiny_model, tiny_training

import npformer
from npformer import UserError
from npformer.data.text import text_dataset
from npformer.models.gpt import GPTConfig
from npformer.pretrained.initial_weights import initial_weights
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import TrainingConfig, resume, train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of a run of twenty steps."""
    run = tmp_path_factory.mktemp("trained") / "run"
    train(run, tiny_dataset(), tiny_model(tiny_dataset()), tiny_training())
    return run


@pytest.fixture
def characters(tmp_path):
    """Return a function that returns the dataset of the characters of a text."""

    def make(text):
        (tmp_path / "text.txt").write_text(text * 40, encoding="utf-8")
        return text_dataset(tmp_path / "text.txt", tokens="characters")

    return make


def gpt_of(dataset):
    return GPTConfig(**dataset.sizes, d_model=8, n_heads=1, n_layers=1, context=4), dataset


def weights_of(path):
    return load_checkpoint(path).parameters


def test_a_run_begins_with_the_weights_of_another_and_resumes_to_the_bit(trained, tmp_path):
    data = tiny_dataset()
    model = tiny_model(data, dropout=0.4, label_smoothing=0.2)
    for name, stop in (("whole", None), ("cut", stop_after(1))):
        initial = initial_weights(trained, model, data)
        train(tmp_path / name, data, model, tiny_training(), initial=initial, stop=stop)
    cut = load_checkpoint(tmp_path / "cut" / "last.safetensors")
    new, old = cut.parameters, weights_of(trained / "best.safetensors")
    assert cut.step == 1
    assert new.keys() == old.keys()
    moved = [np.abs(new[name] - old[name]).max() for name in old]
    assert 0.005 < max(moved) < 0.0101  # by one step of Adam with the learning rate .01
    resume(tmp_path / "cut")
    assert_same(tmp_path / "cut", tmp_path / "whole")


def test_another_model_is_refused(trained, characters):
    for data, model, message in (
        ({}, {"n_heads": 4}, "n_heads is 2 in .*run and 4 in the new run: add --set n_heads=2, or leave"),
        ({"vocab": 13}, {}, "the source vocabulary of .*run is not that of the data"),
    ):
        dataset = tiny_dataset(**data)
        with pytest.raises(UserError, match=message):
            initial_weights(trained, tiny_model(dataset, **model), dataset)
    with pytest.raises(UserError, match="is a model of the kind transformer and the new run trains one of"):
        initial_weights(trained, *gpt_of(characters("the cat\n")))


def test_other_tokens_are_refused(tmp_path, characters):
    """Two texts whose characters are as many, but not the same; and a Hugging Face folder."""
    dataset, other = characters("the cat\n"), characters("the dot\n")
    assert dataset.sizes == other.sizes
    config, _ = gpt_of(dataset)
    train(tmp_path / "run", dataset, config, TrainingConfig(steps=1, batch_size=2))
    assert initial_weights(tmp_path / "run", config, dataset)
    with pytest.raises(UserError, match=r"the text vocabulary of .*run is not that of the data"):
        initial_weights(tmp_path / "run", config, other)
    folder = write_folder(tmp_path / "gpt2", GPT2, gpt2_tensors())
    with pytest.raises(UserError, match="is a Hugging Face folder, whose tokenizer cannot read the data"):
        initial_weights(folder, npformer.load(folder).model.config, dataset)
