"""Decoder-only models of transformers: random settings, and all parts in float64."""

import importlib
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

# the beginning of the names of the classes of each family
FAMILIES = {
    "gpt2": "GPT2",
    "opt": "OPT",
    "llama": "Llama",
    "qwen2": "Qwen2",
    "mistral": "Mistral",
    "phi3": "Phi3",
    "qwen3": "Qwen3",
    "olmo2": "Olmo2",
    "smollm3": "SmolLM3",
    "gpt_neox": "GPTNeoX",
    "gemma": "Gemma",
    "gemma2": "Gemma2",
    "gemma3_text": "Gemma3",
    "mixtral": "Mixtral",
    "qwen3_moe": "Qwen3Moe",
}
CONTEXT = {"gpt2": "n_positions"}  # the name of the setting, if it is not max_position_embeddings
# the families of which the test draws the scaling of Llama 3
LLAMA3 = ("llama", "qwen2", "mistral", "qwen3", "olmo2", "smollm3")


def random_settings(family, rng):
    """Return settings of a small model of a family for transformers."""

    def either(*options):
        return options[rng.integers(len(options))]

    n_heads = either(1, 2, 3, 4)
    settings = {"vocab_size": int(rng.integers(9, 20)), "tie_word_embeddings": either(True, False)}
    settings |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    if family == "gpt2":
        return settings | {
            "n_embd": n_heads * either(2, 3, 5, 8),
            "n_head": n_heads,
            "n_layer": either(1, 2, 3),
            "n_inner": either(None, 7, 24),
            "n_positions": either(7, 8, 33),
            "activation_function": either("gelu_new", "gelu", "relu", "silu", "gelu_pytorch_tanh"),
            "layer_norm_epsilon": either(1e-5, 1e-3),
        }
    if family == "opt":
        return settings | {
            "hidden_size": n_heads * either(2, 3, 5, 8),
            "num_attention_heads": n_heads,
            "num_hidden_layers": either(1, 2, 3),
            "ffn_dim": either(7, 24),
            "max_position_embeddings": either(7, 8, 33),
            "activation_function": either("relu", "gelu"),
        }
    if family == "gpt_neox":
        return settings | {
            "hidden_size": n_heads * 8,
            "num_attention_heads": n_heads,
            "num_hidden_layers": either(1, 2, 3),
            "intermediate_size": either(7, 24),
            "max_position_embeddings": either(7, 8, 33),
            "hidden_act": either("gelu", "gelu_fast", "relu"),
            "layer_norm_eps": either(1e-5, 1e-3),
            "use_parallel_residual": either(True, True, False),
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": either(100.0, 1e4),
                "partial_rotary_factor": either(0.25, 0.5, 1.0),
            },
        }
    head_dim = 2 * either(1, 2, 3, 4)
    llama3 = {
        "rope_type": "llama3",
        "factor": either(2.0, 8.0),
        "low_freq_factor": 1.0,
        "high_freq_factor": either(2.0, 4.0),
        "original_max_position_embeddings": either(4, 16, 64),
    }
    rope = {"rope_theta": either(100.0, 1e4, 5e5)}
    rope |= either({"rope_type": "default"}, llama3) if family in LLAMA3 else {"rope_type": "default"}
    settings |= {
        "hidden_size": n_heads * head_dim,
        "num_attention_heads": n_heads,
        "num_key_value_heads": either(*(n for n in range(1, n_heads + 1) if n_heads % n == 0)),
        "num_hidden_layers": either(1, 2, 3),
        "intermediate_size": either(5, 16),
        "max_position_embeddings": either(7, 8, 33) if rope["rope_type"] == "default" else 100,
        "rms_norm_eps": either(1e-6, 1e-3),
        "rope_parameters": rope,
        "hidden_act": either("silu", "silu", "gelu"),
    }
    if family in ("llama", "smollm3"):
        bias = either(True, False)
        settings |= {"attention_bias": bias, "mlp_bias": bias}
    if family == "smollm3":
        settings["no_rope_layers"] = either(None, [0, 1, 1], [1, 0, 0])
        settings["no_rope_layer_interval"] = either(1, 2)
    if family.startswith("gemma"):
        settings |= {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True, "head_dim": head_dim}
    if family in ("gemma2", "gemma3_text"):
        types = ["sliding_attention", "full_attention"]
        settings["hidden_activation"] = settings.pop("hidden_act")
        settings["layer_types"] = [either(*types) for _ in range(settings["num_hidden_layers"])]
        settings |= {"query_pre_attn_scalar": either(4, 9), "sliding_window": either(2, 3, 5)}
        settings["final_logit_softcapping"] = either(None, 2.0, 30.0)
    if family == "gemma2":
        settings["attn_logit_softcapping"] = either(None, 2.0, 50.0)
    if family == "gemma3_text":
        bases = {kind: {"rope_theta": either(100.0, 1e4), "rope_type": "default"} for kind in types}
        settings["rope_parameters"] = bases
    if family in ("mixtral", "qwen3_moe"):
        settings |= {"num_experts_per_tok": either(2, 3), "num_local_experts": either(3, 4, 5)}
    if family == "qwen3_moe":
        settings["num_experts"] = settings.pop("num_local_experts")
        settings |= {"moe_intermediate_size": either(3, 6), "norm_topk_prob": either(True, False)}
        settings["mlp_only_layers"] = either([], [0], [1, 2])
        if not settings["norm_topk_prob"]:  # with one expert, its weight would always be 1
            settings["num_experts_per_tok"] = either(1, 2)
    if family in ("llama", "mistral", "qwen3", "mixtral", "qwen3_moe"):
        settings |= {"head_dim": head_dim, "hidden_size": n_heads * either(head_dim, 3, 5)}
    if family in ("mistral", "phi3", "mixtral"):
        settings |= {"sliding_window": either(None, 2, 3, 5)}
    return settings


def modeling_of(family):
    """Return the module of transformers with the classes of a family."""
    name = family.removesuffix("_text")
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def random_oracle(family, rng, **changes):
    """Return a random small model of transformers, with changes of its settings."""
    modeling = modeling_of(family)
    text = "Text" if family == "gemma3_text" else ""
    config = getattr(modeling, f"{FAMILIES[family]}{text}Config")(**random_settings(family, rng) | changes)
    config._attn_implementation = "eager"  # the one that returns weights
    config._experts_implementation = "eager"  # the one that computes in float64
    name = "GPT2LMHeadModel" if family == "gpt2" else f"{FAMILIES[family]}ForCausalLM"
    torch.manual_seed(2)  # the initial weights do not depend on the tests before
    model = getattr(modeling, name)(config)
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding):
            module.padding_idx = None  # it would leave the embedding of padding out of the gradient
    return model


def compute_in_float64(monkeypatch, family):
    """Replace the functions of a family that compute in float32 by the same formulas in float64."""
    modeling = modeling_of(family)

    def rms_norm(self, x):
        return self.weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon)

    def rms_norm_of_gemma(self, x):
        return (1 + self.weight) * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps)

    def embed(self, ids):
        return torch.nn.functional.embedding(ids, self.weight) * self.scalar_embed_scale

    def rotary_tables(self, x, position_ids, *layer_type):
        angles = position_ids[..., None] * speeds_of(self.config, *layer_type)
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()

    def attend(module, query, key, value, attention_mask, scaling, dropout=0.0, **settings):
        groups = getattr(module, "num_key_value_groups", 1)
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
        scores, cap = query @ key.transpose(2, 3) * scaling, settings.get("softcap")
        scores = scores if cap is None else cap * torch.tanh(scores / cap)
        weights = torch.softmax(scores + attention_mask, -1)
        return (weights @ value).transpose(1, 2), weights

    def route(self, x):
        logits = torch.nn.functional.linear(x.reshape(-1, self.hidden_dim), self.weight)
        weights, chosen = torch.topk(torch.softmax(logits, -1), self.top_k, -1)
        total = weights.sum(-1, keepdim=True) if getattr(self, "norm_topk_prob", True) else 1
        return logits, weights / total, chosen

    parts = {"RMSNorm": rms_norm, "RotaryEmbedding": rotary_tables, "TopKRouter": route}
    if family.startswith("gemma"):
        parts |= {"RMSNorm": rms_norm_of_gemma, "TextScaledWordEmbedding": embed}
    for part, forward in parts.items():
        if hasattr(modeling, FAMILIES[family] + part):
            monkeypatch.setattr(getattr(modeling, FAMILIES[family] + part), "forward", forward)
    monkeypatch.setattr(modeling, "eager_attention_forward", attend)


def speeds_of(config, layer_type=None):
    """Return the angles at position 1, computed as _compute_llama3_parameters of transformers does."""
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rope = config.rope_parameters if layer_type is None else config.rope_parameters[layer_type]
    width = int(width * rope.get("partial_rotary_factor", 1))
    speeds = 1 / rope["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    if rope["rope_type"] == "default":
        return speeds
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    context, wavelengths = rope["original_max_position_embeddings"], 2 * math.pi / speeds
    smooth = (context / wavelengths - low) / (high - low)
    between = (1 - smooth) * speeds / rope["factor"] + smooth * speeds
    scaled = torch.where(wavelengths > context / low, speeds / rope["factor"], between)
    return torch.where(wavelengths < context / high, speeds, scaled)
