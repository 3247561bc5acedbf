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
