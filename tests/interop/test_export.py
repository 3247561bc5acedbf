"""Models of npformer as Hugging Face folders: the same numbers, and one sentence for what has no place."""

import json

import numpy as np
import pytest
from family_models import BERT_SIZES, CONFIGS, GPT_SIZES, LLAMA, MARIAN_SIZES, random_model
from refused import refused

import npformer
from npformer import UserError
from npformer.interop import export_folder, load_folder
from npformer.interop.export import tensors_of
from npformer.models.bert import Bert, BertConfig
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.recurrent import RecurrentConfig
from npformer.models.registry import build
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.models.universal import UniversalConfig, UniversalTransformer
from npformer.models.vit import ViT

IDS = np.array([[4, 5, 6, 10, 7], [8, 8, 4, 5, 9]])
SOURCE = IDS % 9
IMAGES = np.random.default_rng(0).standard_normal((2, 3, 4, 6))


def logits_of(model):
    inputs = (SOURCE, IDS) if isinstance(model, Transformer) else (IDS,)
    inputs = (IMAGES,) if isinstance(model, ViT) else inputs
    return model(*inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_written_is_read_again_to_the_bit(tmp_path, name, dtype):
    model = random_model(CONFIGS[name], dtype)
    layout = name.split()[0]
    loaded = load_folder(export_folder(model, tmp_path / "new/folder", layout), dtype)
    assert loaded.family.name == layout
    assert not [path.name for path in (tmp_path / "new/folder").iterdir() if path.name.startswith(".")]
    before, after = tensors_of(model, loaded.family), tensors_of(loaded.model, loaded.family)
    assert before.keys() == after.keys()
    for tensor, values in before.items():
        assert values.dtype == dtype
        np.testing.assert_array_equal(values, after[tensor], err_msg=tensor)
    # separate projections are fused in the model that is read, and sums are made in another order
    bound = {np.float32: 1e-5, np.float64: 1e-13}[dtype] if "separate" in name else 0
    np.testing.assert_allclose(logits_of(model), logits_of(loaded.model), rtol=0, atol=bound)


@pytest.mark.torch
@pytest.mark.parametrize("name", CONFIGS)
def test_transformers_gives_the_same_logits(tmp_path, monkeypatch, name):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from gpt_oracles import FAMILIES as GPTS
    from gpt_oracles import compute_in_float64
    from seq2seq_oracles import compute_in_float64 as compute_others_in_float64

    for dtype, bound in ((np.float32, 1e-5), (np.float64, 1e-12)):
        model = random_model(CONFIGS[name], dtype)
        folder = export_folder(model, tmp_path / np.dtype(dtype).name, name.split()[0])
        settings = json.loads((folder / "config.json").read_text())
        kind = getattr(transformers, settings["architectures"][0])
        oracle, told = kind.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
        if "without a head" in name:
            told["missing_keys"] = {key for key in told["missing_keys"] if not key.startswith("pooler.")}
        told["missing_keys"] -= {"final_logits_bias"}  # of a model without a head, which is 0 there
        assert not any(told.values()), told
        oracle = oracle.eval()
        oracle.config._experts_implementation = "eager"  # the one that computes in float64
        assert oracle.dtype == getattr(torch, np.dtype(dtype).name)
        if dtype == np.float64 and settings["model_type"] in GPTS:
            compute_in_float64(monkeypatch, settings["model_type"])
        if dtype == np.float64:
            compute_others_in_float64(monkeypatch)
        read = SOURCE if isinstance(model, Transformer) else IDS
        inputs = {"input_ids": read, "decoder_input_ids": IDS} if read is SOURCE else {"input_ids": IDS}
        if isinstance(model, ViT):
            inputs = {"pixel_values": IMAGES.astype(dtype)}
        if "pad_token_id" in settings:
            inputs["attention_mask"] = settings["pad_token_id"] != read
        with torch.no_grad():
            theirs = oracle(**{name: torch.tensor(x) for name, x in inputs.items()})[0].numpy()
        ours = logits_of(model)
        assert np.abs(ours - theirs).max() <= bound * np.abs(theirs).max()


GPT_CONFIG, LLAMA_OF_PAIRS = GPTConfig(**GPT_SIZES), LLAMA | {"rotary_layout": "interleaved"}
SWIGLU, ONE_KEY_HEAD = GPTConfig(**GPT_SIZES, activation="swiglu"), GPTConfig(**GPT_SIZES, n_kv_heads=1)
REFUSED = {
    "window of the model is 3, and in a gpt2 it is None": (GPTConfig(**GPT_SIZES, window=3), None),
    "n_kv_heads of the model is 1, and in a gpt2 it is": (ONE_KEY_HEAD, "gpt2"),
    "activation of the model is 'swiglu', and the layout has only gelu, gelu_tanh": (SWIGLU, "gpt2"),
    "activation of the model is 'gelu_tanh', and the layout has only swiglu, geglu": (GPT_CONFIG, "llama"),
    "norm of the model is 'layer', and in a llama it is 'rms': train": (SWIGLU, "llama"),
    "rotary_layout of the model is 'interleaved', and in a": (GPTConfig(**GPT_SIZES | LLAMA_OF_PAIRS), None),
    "a GPT cannot be written as bert: give one of gpt2, opt, llama, qwen2": (GPT_CONFIG, "bert"),
    "gpt3": (GPT_CONFIG, "gpt3"),
    "n_segments of the model is 2, and in a distilbert it is 0": (BertConfig(**BERT_SIZES), "distilbert"),
    "positions of the model is 'interleaved', and in a marian it is": (
        TransformerConfig(**MARIAN_SIZES),
        None,
    ),
}


@pytest.mark.parametrize(("words", "arguments"), REFUSED.items())
def test_what_a_layout_cannot_express_is_refused(tmp_path, words, arguments):
    config, family = arguments
    with pytest.raises(UserError) as error:
        export_folder(build(config), tmp_path / "new", family)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


def test_another_kind_of_model_is_refused(tmp_path):
    universal = UniversalTransformer(UniversalConfig(**MARIAN_SIZES))
    recurrent = build(RecurrentConfig(source_vocab=9, target_vocab=9))
    for model in (universal, recurrent):
        with refused(f"a {type(model).__name__} has no Hugging Face layout: export a"):
            export_folder(model, tmp_path / "new")
    with refused("a Translator has no Hugging Face layout: give its .model"):
        export_folder(npformer.load("en-de"), tmp_path / "new")


def test_no_file_is_overwritten(tmp_path):
    (tmp_path / "last.safetensors").write_bytes(b"a run")
    for model in (GPT(CONFIGS["gpt2"]), Bert(CONFIGS["bert"])):
        with refused("is not empty: give a new folder, since no file is overwritten"):
            export_folder(model, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["last.safetensors"]


def test_a_folder_whose_writing_was_interrupted_is_no_model(tmp_path, monkeypatch):
    """The config.json comes last, so that half a folder is refused and never read."""
    from npformer.interop import export

    def interrupted(path, data):
        if path.name == "config.json":
            raise KeyboardInterrupt
        write(path, data)

    write = export.write_file
    monkeypatch.setattr(export, "write_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export_folder(GPT(CONFIGS["gpt2"]), tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model.safetensors"]
    with refused(r"config.json"):
        load_folder(tmp_path / "new")
