"""Small Hugging Face folders, written without transformers."""

import json

import numpy as np
from safetensors.numpy import save_file

GPT2 = {
    "model_type": "gpt2",
    "vocab_size": 9,
    "n_embd": 6,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 8,
}
LLAMA = {
    "model_type": "llama",
    "vocab_size": 9,
    "hidden_size": 8,
    "intermediate_size": 5,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 16,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}
QWEN2 = LLAMA | {"model_type": "qwen2"}


def gpt2_tensors(seed=0):
    """Return random tensors of the model GPT2."""
    shapes = {"wte.weight": (9, 6), "wpe.weight": (8, 6), "ln_f.weight": (6,), "ln_f.bias": (6,)}
    for i in range(2):
        layer = {
            "ln_1.weight": (6,),
            "ln_1.bias": (6,),
            "attn.c_attn.weight": (6, 18),
            "attn.c_attn.bias": (18,),
            "attn.c_proj.weight": (6, 6),
            "attn.c_proj.bias": (6,),
            "ln_2.weight": (6,),
            "ln_2.bias": (6,),
            "mlp.c_fc.weight": (6, 24),
            "mlp.c_fc.bias": (24,),
            "mlp.c_proj.weight": (24, 6),
            "mlp.c_proj.bias": (6,),
        }
        shapes |= {f"h.{i}.{name}": shape for name, shape in layer.items()}
    return _random(shapes, "transformer.", seed)


def llama_tensors(*, qkv_bias=False, seed=0):
    """Return random tensors of the model LLAMA, or QWEN2 with biases of queries, keys and values."""
    shapes = {"embed_tokens.weight": (9, 8), "norm.weight": (8,)}
    for i in range(2):
        layer = {
            "self_attn.q_proj.weight": (8, 8),
            "self_attn.k_proj.weight": (4, 8),
            "self_attn.v_proj.weight": (4, 8),
            "self_attn.o_proj.weight": (8, 8),
            "mlp.gate_proj.weight": (5, 8),
            "mlp.up_proj.weight": (5, 8),
            "mlp.down_proj.weight": (8, 5),
            "input_layernorm.weight": (8,),
            "post_attention_layernorm.weight": (8,),
        }
        if qkv_bias:
            layer |= {f"self_attn.{part}_proj.bias": (8 if part == "q" else 4,) for part in "qkv"}
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return _random(shapes, "model.", seed) | _random({"lm_head.weight": (9, 8)}, "", seed + 1)


def write_folder(folder, settings, tensors, *, n_shards=1):
    """Write a folder with a config.json and the tensors, in one file or in shards, and return it."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    if n_shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    names = [f"model-{i + 1:05}-of-{n_shards:05}.safetensors" for i in range(n_shards)]
    files = {tensor: names[i % n_shards] for i, tensor in enumerate(tensors)}
    for name in names:
        save_file({tensor: tensors[tensor] for tensor, file in files.items() if file == name}, folder / name)
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def forge(path, header, data=b""):
    """Write a safetensors file with any header, a value for JSON or bytes, and any data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def _random(shapes, prefix, seed):
    rng = np.random.default_rng(seed)
    return {f"{prefix}{n}": rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
