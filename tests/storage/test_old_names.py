"""Files that were written before parameters were renamed."""

import numpy as np
import pytest

from npformer.storage.old_names import (
    original_parameter,
    rename_parameter,
    rename_parameters,
    rename_settings,
)

OLD_AND_NEW = {
    "source.words.weight": "source.tokens.weight",
    "words.words.weight": "embedding.tokens.weight",
    "words.positions.weight": "embedding.positions.weight",
    "encoder.reader.forwards.read.weight": "encoder.reader.forwards.input_projection.weight",
    "decoder.cell.recall.bias": "decoder.cell.hidden_projection.bias",
    "decoder.readout.join.weight": "decoder.readout.join.weight",
    "encoder.layers.0.self_attention.query.weight": "encoder.layers.0.self_attention.query.weight",
    "encoder.layers.10.self_residual.norm.gain": "encoder.layers.10.norm1.gain",
    "encoder.layers.0.feed_forward_residual.norm.bias": "encoder.layers.0.norm2.bias",
    "decoder.layers.0.self_residual.norm.gain": "decoder.layers.0.norm1.gain",
    "decoder.layers.1.cross_residual.norm.gain": "decoder.layers.1.norm2.gain",
    "decoder.layers.1.feed_forward_residual.norm.gain": "decoder.layers.1.norm3.gain",
    "decoder.norm.gain": "decoder.norm.gain",
    # a Universal Transformer repeats one layer
    "encoder.layer.feed_forward_residual.norm.gain": "encoder.layer.norm2.gain",
    "decoder.layer.feed_forward_residual.norm.gain": "decoder.layer.norm3.gain",
    # sequences such as "n-dan"
    "encoder.layers.0.self_residual.norm_before.gain": "encoder.layers.0.preprocess1.norm.gain",
    "decoder.layers.0.cross_residual.norm_after.bias": "decoder.layers.0.postprocess2.norm.bias",
    # a GPT
    "layers.11.attention.query_key_value.weight": "layers.11.self_attention.query_key_value.weight",
    "layers.11.attention_residual.norm.gain": "layers.11.norm1.gain",
    "layers.11.feed_forward_residual.norm.gain": "layers.11.norm2.gain",
}


@pytest.mark.parametrize(("old", "new"), OLD_AND_NEW.items())
def test_old_names_are_converted_to_new_ones_and_back(old, new):
    assert rename_parameter(old) == rename_parameter(new) == new
    assert original_parameter(new) == old


def test_converting_a_state_keeps_its_arrays():
    state = {old: np.arange(i) for i, old in enumerate(OLD_AND_NEW)}
    renamed = rename_parameters(state)
    assert list(renamed) == list(OLD_AND_NEW.values())
    assert all(renamed[new] is state[old] for old, new in OLD_AND_NEW.items())


def test_settings_of_a_recurrent_model():
    assert rename_settings({"both_ways": True, "cell": "gru"}) == {"bidirectional": True, "cell": "gru"}
