"""The weights of npformer's GPT under the names of the benchmark's GPT in PyTorch."""

import torch

ENDS = {
    "tokens.weight": "embedding.tokens.weight",
    "positions.weight": "embedding.positions.weight",
    "output.weight": "embedding.tokens.weight",
    "norm.weight": "norm.gain",
    "norm.bias": "norm.bias",
}
LAYER = {
    "attention_norm": "norm1",
    "query_key_value": "self_attention.query_key_value",
    "joined": "self_attention.output",
    "feed_forward_norm": "norm2",
    "inner": "feed_forward.inner",
    "outer": "feed_forward.outer",
}


def copy_weights(model, oracle):
    """Copy the values of all parameters of npformer's model into PyTorch's."""
    state = model.state_dict()
    oracle.load_state_dict({name: torch.from_numpy(_find(state, name)) for name in oracle.state_dict()})


def _find(state, name):
    """Return the array of a parameter of PyTorch's model. Its linear maps have shape (out, in)."""
    if name in ENDS:
        return state[ENDS[name]]
    _, number, layer, kind = name.split(".")
    if layer.endswith("norm"):
        return state[f"layers.{number}.{LAYER[layer]}.{'gain' if kind == 'weight' else 'bias'}"]
    return state[f"layers.{number}.{LAYER[layer]}.{kind}"].T.copy()
