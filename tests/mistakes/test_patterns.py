"""The diagnosis patterns one by one: each recognizes its own mistake and returns "" for all others."""

import numpy as np
import pytest

from npformer import functional as F
from npformer.checking.shapes import describe_shape
from npformer.mistakes.patterns import UNKNOWN, Count, DiagnosisContext, describe

RNG = np.random.default_rng(3)
RIGHT = RNG.standard_normal((4, 5))
DY = RNG.standard_normal((4, 5))
OTHER = RNG.standard_normal((4, 5))
SOFT, _ = F.softmax(RNG.standard_normal((4, 5)))
XHAT = F.layer_norm(RNG.standard_normal((4, 5)), np.ones(5), np.zeros(5), 0.0)[1].xhat
SQUARE = RNG.standard_normal((4, 4))
TRI = np.tri(4)
ROWS = RNG.standard_normal((4, 1))
IDS = np.array([1, 0, 4, 2])
AT = np.eye(5)[IDS]


def clue(right, found, **known):
    return describe(
        DiagnosisContext(
            right,
            found,
            numbers=[(2, "2"), (5, "5 (axis 1 of x)"), (8, Count("8 (all ids)")), (7, Count("7 (ids)"))],
            **known,
        )
    )


CLUES = {
    "nothing": (clue(RIGHT, 0 * RIGHT), "every entry is 0"),
    "should be nothing": (clue(0 * RIGHT, RIGHT), "every entry should be 0"),
    "sign": (clue(RIGHT, -RIGHT), "sign is wrong"),
    "twice": (clue(RIGHT, 2 * RIGHT), "2 times the correct one (is it counted twice?)"),
    "root": (clue(RIGHT, 5**0.5 * RIGHT), "√5 (axis 1 of x)"),
    "averaged": (clue(RIGHT, RIGHT / 5), "1/5 (axis 1 of x)"),
    "one count over another": (clue(RIGHT, RIGHT * 7 / 8), "divided by the wrong one of these two counts"),
    "some factor": (clue(RIGHT, 7.3 * RIGHT), "it is 7.3 times"),
    "transposed": (clue(SQUARE, SQUARE.T), "transposed"),
    "opposite": (clue(TRI, 1 - TRI), "opposite"),
    "diagonal": (clue(TRI, np.tri(4, k=-1)), "all on the diagonal"),
    "another tensor": (clue(RIGHT, OTHER, others={"dk": OTHER}), "same as dk"),
    "residual": (clue(RIGHT, RIGHT - DY, dy=DY), "residual connection was left out"),
    "residual twice": (clue(RIGHT, RIGHT + DY, dy=DY), "added twice"),
    "mean": (clue(RIGHT, RIGHT + ROWS), "by a constant: the term from the mean"),
    "spread": (clue(RIGHT, RIGHT[:, ::-1]), "along axis 1 it contains the correct numbers"),
    "softmax's sum": (
        clue(SOFT * (DY - (DY * SOFT).sum(-1, keepdims=True)), SOFT * DY, dy=DY, arrays={"y": SOFT}),
        "by a multiple of y: the term from the sum over that axis is missing",
    ),
    "variance": (clue(RIGHT, RIGHT + ROWS * XHAT, dy=DY, arrays={"xhat": XHAT}), "term from the variance"),
    "mean and variance": (
        clue(RIGHT, RIGHT + ROWS * XHAT + ROWS[::-1], arrays={"xhat": XHAT}), "the mean and from the variance"
    ),
    "factor array": (clue(RIGHT * OTHER, RIGHT, arrays={"keep": OTHER}), "the factor keep is missing"),
    "factor array twice": (clue(RIGHT, RIGHT * OTHER, arrays={"keep": OTHER}), "once too often"),
    "factor by row": (clue(RIGHT, RIGHT * ROWS), "a number that differs from row to row"),
    "direction of sums": (
        clue(SQUARE[:, :3].cumsum(1), np.flip(SQUARE[:, 2::-1].cumsum(1), 1)),
        "the sums along axis 1 run in the wrong direction",
    ),
    "shifted": (clue(RIGHT, np.roll(RIGHT, 1, 0)), "one position too late"),
    "order": (clue(RIGHT, RIGHT.reshape(5, 4).T.reshape(4, 5)), "wrong order"),
    "one a row": (clue(RIGHT, RIGHT + AT * OTHER, arrays={"targets": IDS}), "entries at the indices targets"),
    "dy": (clue(RIGHT, DY, dy=DY), "dy itself"),
    "a factor of dy": (clue(RIGHT, DY * OTHER, dy=DY, arrays={"s": OTHER}), "it is only dy · s"),
    "an array": (clue(RIGHT, OTHER, arrays={"x": OTHER}), "it equals x itself"),
    "all rows alike": (clue(RIGHT, np.ones((4, 1)) * OTHER[:1]), "all entries along axis 0 are equal"),
    "unknown": (clue(RIGHT, OTHER), UNKNOWN),
}  # fmt: skip


@pytest.mark.parametrize("name", CLUES)
def test_a_clue(name):
    message, words = CLUES[name]
    assert words in message


def test_repeated_rows():
    ids = np.array([2, 1, 2, 0])
    right, found = np.zeros((4, 3)), np.zeros((4, 3))
    dy = RNG.standard_normal((4, 3))
    np.add.at(right, ids, dy)
    found[ids] = dy
    assert "only rows whose index occurs several times in ids" in clue(right, found, arrays={"ids": ids})


def test_a_missing_product_of_each_sequence():
    weights, dy, other = RNG.standard_normal((3, 2, 4, 4))
    message = clue(weights.swapaxes(1, 2) @ dy + other, other, operands={"weights": weights, "dy": dy})
    assert message == "the term weightsᵀ dy is missing"


@pytest.mark.parametrize(("c", "sign"), [(-0.25, ""), (-2, ", or the sign of dy · x is wrong")])
def test_a_missing_multiple_of_a_product(c, sign):
    message = clue(RIGHT + c * DY * OTHER, RIGHT, operands={"x": OTHER, "dy": DY})
    assert message == f"the term {c} · dy · x is missing{sign}"


def test_a_shift_in_the_wrong_direction():
    right, found = (np.zeros((4, 5)) for _ in range(2))
    right[:, :-1], found[:, 1:] = DY[:, 1:], DY[:, :-1]
    assert "two positions too late (must the shift go in the other direction?)" in clue(right, found, dy=DY)


def test_a_missing_path_through_a_gate():
    gate = 1 / (1 + np.exp(-OTHER))
    right = DY * gate + DY * OTHER * gate * (1 - gate)
    assert "the path through the gate g is missing" in clue(
        right, DY * gate, dy=DY, arrays={"x": OTHER, "g": gate}
    )


def test_a_norm_whose_mean_and_deviation_are_taken_as_constants():
    mean, deviation = OTHER.mean(-1, keepdims=True), OTHER.std(-1, keepdims=True)
    xhat = (OTHER - mean) / deviation
    right = (DY - DY.mean(-1, keepdims=True) - xhat * (DY * xhat).mean(-1, keepdims=True)) / deviation
    message = clue(right, DY / deviation, dy=DY, arrays={"x": OTHER})
    assert message.endswith("a multiple of x: the terms from the mean and from the variance are missing")


def test_the_jacobian_in_the_place_of_its_product_with_dy():
    jacobian = np.stack([np.diag(row) - np.outer(row, row) for row in SOFT])
    right = (jacobian @ DY[..., None])[..., 0]
    assert "it is the Jacobian" in describe_shape(right, jacobian, dy=DY)
    assert "it is the Jacobian" not in describe_shape(right, jacobian + 1, dy=DY)


def test_rows_that_all_have_several_uses_explain_nothing():
    ids = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    assert "several times" not in clue(RIGHT, OTHER, arrays={"ids": ids})


@pytest.mark.parametrize(
    ("right", "found", "words"),
    [
        (RIGHT.sum(0), RIGHT, "its sum over axis 0 is correct, so an axis must still be summed"),
        (
            RIGHT,
            RIGHT.sum(0),
            "it is the sum of the correct result over axis 0, but this sum must not be computed",
        ),
        (RIGHT.sum(0), RIGHT.sum(0, keepdims=True), "the numbers are correct, but they have another shape"),
        (RIGHT, RIGHT.T, "it is transposed"),
        (np.repeat(ROWS, 5, 1), ROWS, "its numbers are correct, and must be repeated along axis 1"),
        (RIGHT.sum(), OTHER, "must an axis still be summed?"),
        (RIGHT, RIGHT[RIGHT > 0], "does a Boolean index remove the others?"),
        (RIGHT, OTHER.sum(0), "is an axis summed that must not be summed?"),
        (RIGHT, np.full(5, np.nan), "(5,) and should be (4, 5)"),
        (RIGHT, np.array(["a"]), "(1,) and should be (4, 5)"),
    ],
)
def test_shapes(right, found, words):
    assert words in describe_shape(np.asarray(right), found)
