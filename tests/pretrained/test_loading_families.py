"""Folders of every family with a tokenizer: saliency is complete, and gradcheck finds mistakes."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")
pytest.importorskip("transformers")  # it writes the tokenizer of Llama
from family_models import CONFIGS, random_model
from marian_folders import marian_folder
from tokenizer_folders import bert, gpt2, llama, load_oracle, qwen2

import npformer
from npformer.cli.main import main
from npformer.interop import export_folder
from npformer.nn import MultiHeadAttention

pytestmark = pytest.mark.torch  # transformers is installed with PyTorch

TOKENIZERS = {
    "gpt2": gpt2,
    "llama": llama,
    "qwen2": qwen2,
    "bert": bert,
    "distilbert": lambda folder: bert(folder, family="distilbert"),
}
FAMILIES = [*TOKENIZERS, "marian"]
LLAMA = "llama with key heads, scaling and biases"
every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Write a folder of each family, with a random model and a tokenizer that fits."""
    root = tmp_path_factory.mktemp("families")
    folders = {"marian": marian_folder(root / "marian")}
    for family, make_tokenizer in TOKENIZERS.items():
        source = make_tokenizer(root / f"tokenizer of {family}")
        length = {"max_length": 40} if "bert" in family else {"context": 40}
        config = CONFIGS[LLAMA if family == "llama" else family]
        config = config.replace(vocab_size=len(load_oracle(source)), pad_id=0, **length)
        folder = export_folder(random_model(config), root / family, family)
        settings = (folder / "config.json").read_text()
        shutil.copytree(source, folder, dirs_exist_ok=True)
        (folder / "config.json").write_text(settings)
        folders[family] = folder
    return folders


def text_of(family):
    return "The king [MASK] his crown." if "bert" in family else "The king has lost his crown."


@every_family
def test_integrated_gradients_are_complete(folders, family):
    loaded = npformer.load(folders[family], dtype="float64")
    found = loaded.saliency(text_of(family), tolerance=1e-3, most_points=4000)
    assert abs(found.value - found.baseline) > 20e-3  # far more than the tolerance
    assert abs(found.sum - (found.value - found.baseline)) <= 1e-3
    assert all(len(found.scores[name]) == len(found.tokens[name]) > 1 for name in found.scores)


@every_family
def test_lenses_look_into_every_family(folders, family):
    loaded = npformer.load(folders[family])
    text = text_of(family)
    lens, parts = loaded.lens(text), loaded.attribution(text)
    run = loaded._reading(text)
    assert lens.ids[-1, :, 0].tolist() == loaded.model(*run.ids)[0].argmax(-1).tolist()
    assert parts.sum == pytest.approx(parts.total, abs=1e-10)
    other = text.replace("his crown", "crown his")  # of as many tokens
    assert loaded.patch(text, other).table()


@every_family
def test_gradcheck_passes_and_names_the_tensors_of_a_wrong_gradient(folders, family, monkeypatch, capsys):
    command = ["gradcheck", "--model", str(folders[family]), "The king has lost his crown.", "--json"]
    assert main(command) == 0
    names = {row["tensor"] for row in json.loads(capsys.readouterr().out)}
    model = npformer.load(folders[family]).model
    assert names == {name for name, _ in model.named_parameters()}

    right = MultiHeadAttention.backward

    def wrong(self, dy, cache):
        dx = right(self, dy, cache)
        self.output.weight.grad[1, 2] += 1
        return dx

    monkeypatch.setattr(MultiHeadAttention, "backward", wrong)
    assert main(command) == 1
    rows = [row for row in json.loads(capsys.readouterr().out) if not row["ok"]]
    attentions = ("attention.output.weight", "cross.output.weight")
    assert {row["tensor"] for row in rows} == {name for name in names if name.endswith(attentions)}
    assert {tuple(row["entry"]) for row in rows} == {(1, 2)}
    assert np.all([row["error"] > row["tolerance"] for row in rows])
