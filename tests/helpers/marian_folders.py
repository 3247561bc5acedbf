"""A small Marian folder, written without transformers: a random model with a real tokenizer."""

import json

import numpy as np
from decoding_models import random_model
from hugging_face_oracles import by_their_names
from safetensors.numpy import save_file
from tokenizer_folders import lines, marian, write_json

from npformer.interop.families.marian import MARIAN
from npformer.interop.settings_file import Settings

LENGTH = 40  # the tokens of a sentence that the model can read, its end included


def marian_folder(folder):
    """Write the folder, with the search settings of the opus-mt translators, and return it."""
    marian(folder)
    ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    special = {
        "pad_token_id": ids["<pad>"],
        "eos_token_id": ids["</s>"],
        "decoder_start_token_id": ids["<pad>"],
        "forced_eos_token_id": ids["</s>"],
    }
    sizes = {"layers": 2, "attention_heads": 2, "ffn_dim": 24}
    settings = {
        "model_type": "marian",
        "vocab_size": len(ids),
        "d_model": 16,
        "max_position_embeddings": LENGTH,
        "activation_function": "swish",
        "scale_embedding": True,
        **{f"{side}_{name}": size for name, size in sizes.items() for side in ("encoder", "decoder")},
        **special,
    }
    search = {"num_beams": 4, "max_length": 14, "bad_words_ids": [[ids["<pad>"]]], "renormalize_logits": True}
    write_json(folder / "config.json", settings)
    write_json(folder / "generation_config.json", {**special, **search})
    config = MARIAN.config_of(Settings(settings))
    state = random_model(config, 2).state_dict()
    for piece, index in ids.items():  # translations of ASCII characters can be drawn with any font
        state["output.bias"][index] -= 0 if piece.removeprefix("▁").isascii() else 50
    state["output.bias"][ids["</s>"]] += 10  # some translations end early, and some are cut
    tensors = by_their_names(MARIAN, config, state)
    tensors = {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def sentences(count):
    """Return sentences of 1 to 5 words, some of them with a code of the target language."""
    codes = ["", "", ">>de<< ", ">>fr<< "]
    some = [" ".join(line.split()[: 1 + i % 5]) for i, line in enumerate(lines()[:count])]
    return [codes[i % 4] + sentence for i, sentence in enumerate(some)]
