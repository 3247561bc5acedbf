"""The table of changes: each is a mistake in code, and the right code in its place.

The repair looks for the wrong code in what a learner wrote, and puts the right code in its place. The tests
of the package plant the changes of one operation into another (`OPPOSITE` and `COMPARISONS`). The mistakes
that the grader makes in a correct solution are in sentences.py, in the same notation (see syntax.py).

A row is "right code => wrong code ## what the repair says of the wrong code". A letter that only the right
code has stands for the variables of the function, one after the other.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from npformer.language import GRADER, phrase
from npformer.mistakes.syntax import Edit, Reading, filled, matched, parsed, shown, sites_in
from npformer.mistakes.tables import rows_of


class Change(NamedTuple):
    """A mistake.

    Args:
        right: The right code.
        wrong: The wrong code.
        says: The template of its sentence, in which {A} stands for the text of A.
    """

    right: str
    wrong: str
    says: str


def changes(table: str) -> tuple[Change, ...]:
    """Return the rows of a table."""
    return tuple(Change(*row.changes[0], row.says) for row in rows_of(table))


POWERS = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.5, 2.0, 3.0)

# another value of the function is missing
MISSING_VALUES = changes(
    r"""
    A * V => A ## the factor {V} is missing
    A / V => A ## the division by {V} is missing
    A + V => A ## the term {V} is missing
    A - V => A ## the term {V} is missing, or is not subtracted
    A & V => A ## the condition {V} is missing
    A @ V => A ## the product with {V} is missing
    A @ V.swapaxes(-1, -2) => A ## the product with {V} is missing
    V @ A => A ## the product with {V} is missing
    V.swapaxes(-1, -2) @ A => A ## the product with {V} is missing
    A * V[..., None] => A ## the factor {V} is missing
    A + V[..., None] => A ## the term {V} is missing
    """
)
ENTRY_BY_ENTRY = MISSING_VALUES[:4]
TERMS = MISSING_VALUES[2:4]
DERIVATIVES = changes(
    r"""
    A * (1 - V) => A ## the factor 1 - {V} is missing
    A * (1 - V**2) => A ## the factor 1 - {V}² is missing
    """
)
OFTEN_MISSING = changes(
    r"""
    -A => A ## the sign of {A} is wrong
    not A => A ## the opposite of {A} is needed
    ~A => A ## the opposite of {A} is needed
    1 - A => A ## 1 minus {A} is needed
    A.swapaxes(-1, -2) => A ## {A} is not transposed
    A.sum(-1, keepdims=True) => A ## the sum of {A} over the last axis is missing
    A.sum(-1) => A ## the sum of {A} over the last axis is missing
    A.T => A ## {A} is not transposed
    A.sum(1) => A ## the sum of {A} over axis 1 is missing
    A.sum(0, keepdims=True) => A ## the sum of {A} over the first axis is missing
    A.sum(0) => A ## the sum of {A} over the first axis is missing
    A.sum() => A ## the sum of {A} is missing
    A / 2 => A ## {A} is twice as large as it should be
    2 * A => A ## {A} is half as large as it should be
    """
)
MISSING = changes(
    r"""
    A.conj() => A ## {A} is not conjugated
    A.mean(-1, keepdims=True) => A ## the mean of {A} over the last axis is missing
    A.mean() => A ## the mean of {A} is missing
    A.max(-1, keepdims=True) => A ## the maximum of {A} over the last axis is missing
    np.sqrt(A) => A ## the square root of {A} is missing
    A**2 => A ## the square of {A} is missing
    1 / A => A ## 1 divided by {A} is needed
    np.exp(A) => A ## exp of {A} is missing
    np.log(A) => A ## the logarithm of {A} is missing
    np.abs(A) => A ## the absolute value of {A} is missing
    np.tanh(A) => A ## tanh of {A} is missing
    np.maximum(A, 0) => A ## {A} may be negative
    min(A, 1) => A ## {A} may be larger than 1
    A + 1 => A ## {A} is one less than it should be
    A - 1 => A ## {A} is one more than it should be
    100 * A => A ## the factor 100 is missing
    A[::-1] => A ## {A} must be in the reverse order
    reversed(A) => A ## {A} must be in the reverse order
    A[1:] => A ## the first entry of {A} must be left out
    A[:-1] => A ## the last entry of {A} must be left out
    A[..., None] => A ## {A} lacks an axis at the end
    A[:, None] => A ## {A} lacks an axis
    A[None] => A ## {A} lacks an axis at the beginning
    A.copy() => A ## {A} is not copied before it is changed
    list(A) => A ## {A} must be made a list
    A.tolist() => A ## {A} must be made a list
    float(A) => A ## {A} must be made a number
    int(A) => A ## {A} must be made a whole number
    A > 0 => A ## it must be compared with 0
    """
)
# one operation instead of another, or one that should not be there
OPERATIONS = changes(
    r"""
    A + B => A - B ## the sign of the term {B} is wrong
    A - B => A + B ## the sign of the term {B} is wrong
    A => A / B ## the division by {B} should not be there
    A * B => A / B ## it is divided by {B} instead of multiplied
    B / A => A / B ## the numerator and the denominator are exchanged
    A // B => A / B ## the quotient of {A} and {B} must be rounded down
    A => A + B ## the term {B} should not be there
    B => A + B ## the term {A} should not be there
    B - A => A + B ## the sign of the term {A} is wrong
    A * B => A + B ## {A} and {B} are added instead of multiplied
    A => A - B ## the term {B} should not be there
    -B => A - B ## the term {A} should not be there
    B - A => A - B ## {A} and {B} are exchanged in the difference
    -A - B => A - B ## the sign of {A} is wrong
    A * B => A - B ## {A} and {B} are subtracted instead of multiplied
    A => A * B ## the factor {B} should not be there
    B => A * B ## the factor {A} should not be there
    A / B => A * B ## it is multiplied by {B} instead of divided
    B / A => A * B ## it is multiplied by {A} instead of divided
    A + B => A * B ## {A} and {B} are multiplied instead of added
    A - B => A * B ## {A} and {B} are multiplied instead of subtracted
    A @ B => A * B ## {A} and {B} are multiplied entry by entry instead of as matrices
    A**B => A * B ## {A} and {B} are multiplied instead of used as base and power
    B @ A => A @ B ## in the product of {A} and {B}, the two matrices are exchanged
    A.swapaxes(-1, -2) @ B => A @ B ## in the product of {A} and {B}, the first matrix is not transposed
    A @ B.swapaxes(-1, -2) => A @ B ## in the product of {A} and {B}, the second matrix is not transposed
    B.swapaxes(-1, -2) @ A => A @ B
        ## in the product of {A} and {B}, the matrices are exchanged, and one is not transposed
    B @ A.swapaxes(-1, -2) => A @ B
        ## in the product of {A} and {B}, the matrices are exchanged, and one is not transposed
    B.swapaxes(-1, -2) @ A.swapaxes(-1, -2) => A @ B ## the product of {A} and {B} is transposed
    A => A @ B ## the product with {B} should not be there
    B => A @ B ## the product with {A} should not be there
    A * B => A @ B ## in the product of {A} and {B}, matrices are multiplied instead of entries
    A => A**B ## the power of {A} should not be there
    A**-B => A**B ## the power of {A} has the wrong sign
    """
    + "".join(f"\n    A**{power} => A**B ## {{A}} is raised to the wrong power" for power in POWERS)
    + r"""
    B**A => A**B ## {A} and {B} are exchanged in the power
    A * B => A**B ## a power is used instead of a product
    A / B => A // B ## // rounds the quotient of {A} and {B} down, and the exact quotient is needed
    A % B => A // B ## // is used instead of %
    A // B => A % B ## % is used instead of //
    A | B => A & B ## & is used instead of |
    A => A & B ## the condition {B} should not be there
    B => A & B ## the condition {A} should not be there
    A & B => A | B ## | is used instead of &
    A => A | B ## the condition {B} should not be there
    B => A | B ## the condition {A} should not be there
    """
)
STEPS = changes(
    r"""
    A += B => A -= B ## the wrong operation changes {A}: the opposite is needed
    A -= B => A += B ## the wrong operation changes {A}: the opposite is needed
    A *= B => A /= B ## the wrong operation changes {A}: the opposite is needed
    A /= B => A *= B ## the wrong operation changes {A}: the opposite is needed
    np.add.at(A, I, B) => A[I] += B ## of equal indices only one is added by [...] +=
    """
)

# those whose sentences a learner reads
TABLES = (MISSING_VALUES, DERIVATIVES, OFTEN_MISSING, MISSING, OPERATIONS, STEPS)

# code and the same in other words, as a person writes it. The axes must be two for some: the search tries it
SIMPLER = changes(
    r"""
    A.swapaxes(-1, -2).swapaxes(-1, -2) => A ## simpler
    A.T.swapaxes(-1, -2) => A ## simpler
    A.swapaxes(-1, -2).T => A ## simpler
    A.T.T => A ## simpler
    A.swapaxes(-1, -2) => A.T ## simpler
    --A => A ## simpler
    not not A => A ## simpler
    ~~A => A ## simpler
    A - -B => A + B ## simpler
    A + -B => A - B ## simpler
    -A + B => B - A ## simpler
    A + B - B => A ## simpler
    A - B + B => A ## simpler
    1 - (1 - A) => A ## simpler
    A * B / B => A ## simpler
    A / B * B => A ## simpler
    2 * (A / 2) => A ## simpler
    2 * A / 2 => A ## simpler
    A * 1 => A ## simpler
    1 * A => A ## simpler
    A / 1 => A ## simpler
    A**1 => A ## simpler
    A**1.0 => A ## simpler
    """
)

# other comparisons, the most likely mistake first
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}

# the first other operation with the same operands: such as a - b for a + b
OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {}
for _row in OPERATIONS:
    match parsed(_row.right), parsed(_row.wrong):
        case ast.BinOp(ast.Name("A"), _right, ast.Name("B")), ast.BinOp(ast.Name("A"), _wrong, ast.Name("B")):
            OPPOSITE.setdefault(type(_right), type(_wrong))


def repairs(table: Sequence[Change], node: ast.AST) -> Iterator[Reading]:
    """Yield the right code for a node that may be the wrong code of a table, and what is then wrong."""
    for row in table:
        if (parts := matched(row.wrong, node)) is not None:
            words = {letter: shown(part) for letter, part in parts.items()}
            new = filled(row.right, parts)
            is_step = isinstance(node, ast.stmt) and isinstance(new, ast.expr)
            yield phrase(row.says, GRADER, **words), ast.Expr(new) if is_step else new


def simplifications(made: Edit) -> Iterator[Edit]:
    """Yield the edits that simplify the statement of an edit."""
    for site in sites_in(made.statement) if made.statement else ():
        for code, simpler, _ in SIMPLER:
            if (parts := matched(code, site.node)) is not None:
                yield replace(site.edit("", filled(simpler, parts)), function=made.function)
