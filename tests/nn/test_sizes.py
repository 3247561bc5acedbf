"""Every layer refuses sizes that are no whole numbers of 1 or more, by the names that the caller knows."""

import inspect

import numpy as np
import pytest

from npformer import UserError, nn

# what the sizes of these layers say besides
OTHERS = {
    nn.MultiHeadLatentAttention: {"rotary": nn.RotaryPositions(3, 3, rotated=2)},
    nn.LoRALinear: {"layer": nn.Linear(2, 2)},
    nn.Similarity: {"kind": "perceptron"},
}


def sizes_of(kind):
    """Return the names of the sizes of a class, and those of them that have no default."""
    parameters = inspect.signature(kind).parameters.values()
    sizes = [one for one in parameters if one.annotation in ("int", int, "int | None", int | None)]
    return [one.name for one in sizes], [one.name for one in sizes if one.default is one.empty]


# a Projection is a Linear, which speaks of n_in
KINDS = [
    kind
    for kind in vars(nn).values()
    if inspect.isclass(kind) and sizes_of(kind)[1] and kind is not nn.Projection
]


def test_there_are_many_of_them():
    assert {nn.Linear, nn.MultiHeadAttention, nn.Recurrent, *OTHERS} <= set(KINDS)


@pytest.mark.parametrize("wrong", [2.0, 2.5, 0, -2, "2", True, [2], np.float32(2)], ids=repr)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_size_is_a_whole_number_of_1_or_more(kind, wrong):
    names, needed = sizes_of(kind)
    right = dict.fromkeys(needed, 2) | OTHERS.get(kind, {})
    kind(**right)
    for name in names:
        if name != "zero_id":
            with pytest.raises(UserError, match=f"^{name} is .*: it must be a whole number, 1 or more$"):
                kind(**right | {name: wrong})


@pytest.mark.parametrize("wrong", ["8", 2.5, -1, 9, True])
def test_the_id_whose_vector_is_0_is_in_the_table(wrong):
    with pytest.raises(UserError, match=f"^zero_id is {wrong!r}: there are 9 zero_ids, counted from 0"):
        nn.Embedding(9, 4, zero_id=wrong)
    assert not nn.Embedding(9, 4, zero_id=8).weight.value[8].any()
