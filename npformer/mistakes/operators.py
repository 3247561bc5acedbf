"""The table of mistakes: each is a change of code, which is read in both directions.

The grader makes a mistake in a correct solution: it puts the wrong code in the place of the right code. The
repair undoes it in the learner's code: it puts the right code in the place of the wrong code. The tests of
the package plant the changes of one operation into another (`OPPOSITE` and `COMPARISONS`).

In the code, a letter stands for any expression, `*p` for any arguments and `**k` for any keyword arguments. A
letter that only the new code has stands for the variables of the function, one after the other.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from npformer.mistakes.syntax import Edit, Reading, filled, matched, parsed, shown, sites_in


class Operator(NamedTuple):
    """A mistake.

    In the sentences, {a} is the text of the expression a if it is short, and {A} stands for it as a subject.

    Args:
        right: The right code.
        wrong: The wrong code.
        found: What the repair says of the learner's code, or "" if it does not look for the mistake.
        made: What the grader says of the solution with the mistake, or "" if it does not make the mistake.
    """

    right: str
    wrong: str
    found: str
    made: str = ""


def _operators(*rows: tuple[str, ...]) -> tuple[Operator, ...]:
    return tuple(Operator(*row) for row in rows)


POWERS = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.5, 2.0, 3.0)
EXCHANGED = "in the product of {a} and {b}, the matrices are exchanged, and one is not transposed"
DIVIDED, MULTIPLIED = "it divides by {B} instead of multiplying", "it multiplies by {B} instead of dividing"
LEFT_OUT = "a step is left out"
OPPOSITE_STEP = "the wrong operation changes {a}: the opposite is needed"
OVERWRITTEN = "it is overwritten (=) instead of added (+=)"
WRONG_SIGN = "the sign of the term {b} is wrong"
TURNED = "the numerator and the denominator are exchanged"
KEEPS_ONE = "a row whose index occurs twice keeps only one gradient, because it is overwritten"
ADDS_ONCE = "a row whose index occurs twice keeps only one gradient, because table[ids] += adds once"
OTHER_AXIS = "the {} over {} is computed instead of that over another axis"
WITHOUT_SLICE = "{A} is used without its slice"
OVER = {"None": "all entries", "0": "axis 0", "-1": "axis -1", "-2": "axis -2", "(0, 1)": "axis (0, 1)"}
METHODS = ("sum", "mean", "reshape", "max")

# another value of the function is missing
MISSING_VALUES = _operators(
    ("a * v", "a", "the factor {v} is missing", "the factor {v} is left out"),
    ("a / v", "a", "the division by {v} is missing", "the divisor {v} is left out"),
    ("a + v", "a", "the term {v} is missing", "the term {v} is left out"),
    ("a - v", "a", "the term {v} is missing, or is not subtracted", "the term {v} is left out"),
    ("a & v", "a", "the condition {v} is missing", "the condition {v} is left out"),
    ("a @ v", "a", "the product with {v} is missing"),
    ("a @ v.swapaxes(-1, -2)", "a", "the product with {v} is missing"),
    ("v @ a", "a", "the product with {v} is missing"),
    ("v.swapaxes(-1, -2) @ a", "a", "the product with {v} is missing"),
    ("a * v[..., None]", "a", "the factor {v} is missing"),
    ("a + v[..., None]", "a", "the term {v} is missing"),
)
ENTRY_BY_ENTRY = MISSING_VALUES[:4]
TERMS = MISSING_VALUES[2:4]
DERIVATIVES = _operators(
    ("a * (1 - v)", "a", "the factor 1 - {v} is missing"),
    ("a * (1 - v**2)", "a", "the factor 1 - {v}² is missing"),
)
OFTEN_MISSING = _operators(
    ("-a", "a", "the sign of {a} is wrong", "the sign is left out"),
    ("not a", "a", "the opposite of {a} is needed", "a condition is reversed"),
    ("~a", "a", "the opposite of {a} is needed", "a condition is reversed"),
    ("1 - a", "a", "1 minus {a} is needed"),
    ("a.swapaxes(-1, -2)", "a", "{a} is not transposed"),
    ("a.sum(-1, keepdims=True)", "a", "the sum of {a} over the last axis is missing"),
    ("a.sum(-1)", "a", "the sum of {a} over the last axis is missing"),
    ("a.T", "a", "{a} is not transposed", "{A} is not transposed"),
    ("a.sum(1)", "a", "the sum of {a} over axis 1 is missing"),
    ("a.sum(0, keepdims=True)", "a", "the sum of {a} over the first axis is missing"),
    ("a.sum(0)", "a", "the sum of {a} over the first axis is missing"),
    ("a.sum()", "a", "the sum of {a} is missing"),
    ("a / 2", "a", "{a} is twice as large as it should be"),
    ("2 * a", "a", "{a} is half as large as it should be"),
)
MISSING = _operators(
    ("a.conj()", "a", "{a} is not conjugated"),
    ("a.mean(-1, keepdims=True)", "a", "the mean of {a} over the last axis is missing"),
    ("a.mean()", "a", "the mean of {a} is missing"),
    ("a.max(-1, keepdims=True)", "a", "the maximum of {a} over the last axis is missing"),
    ("np.sqrt(a)", "a", "the square root of {a} is missing"),
    ("a**2", "a", "the square of {a} is missing"),
    ("1 / a", "a", "1 divided by {a} is needed"),
    ("np.exp(a)", "a", "exp of {a} is missing"),
    ("np.log(a)", "a", "the logarithm of {a} is missing"),
    ("np.abs(a)", "a", "the absolute value of {a} is missing"),
    ("np.tanh(a)", "a", "tanh of {a} is missing"),
    ("np.maximum(a, 0)", "a", "{a} may be negative"),
    ("min(a, 1)", "a", "{a} may be larger than 1"),
    ("a + 1", "a", "{a} is one less than it should be"),
    ("a - 1", "a", "{a} is one more than it should be"),
    ("100 * a", "a", "the factor 100 is missing"),
    ("a[::-1]", "a", "{a} must be in the reverse order"),
    ("reversed(a)", "a", "{a} must be in the reverse order"),
    ("a[1:]", "a", "the first entry of {a} must be left out"),
    ("a[:-1]", "a", "the last entry of {a} must be left out"),
    ("a[..., None]", "a", "{a} lacks an axis at the end"),
    ("a[:, None]", "a", "{a} lacks an axis"),
    ("a[None]", "a", "{a} lacks an axis at the beginning"),
    ("a.copy()", "a", "{a} is not copied before it is changed"),
    ("list(a)", "a", "{a} must be made a list"),
    ("a.tolist()", "a", "{a} must be made a list"),
    ("float(a)", "a", "{a} must be made a number"),
    ("int(a)", "a", "{a} must be made a whole number"),
    ("a > 0", "a", "it must be compared with 0"),
)
# one operation instead of another, or one that is too much or too little
OPERATIONS = _operators(
    ("a + b", "b", "", "the term {a} is left out"),
    ("a + b", "a - b", WRONG_SIGN, WRONG_SIGN),
    ("a + b", "a + b + b", "", "the term {b} appears twice"),
    ("a + b", "a + (a + b)", "", "the term {a} appears twice"),
    ("a - b", "-b", "", "the term {a} is left out"),
    ("a - b", "a + b", WRONG_SIGN, WRONG_SIGN),
    ("a - b", "a - b - b", "", "the term {b} appears twice"),
    ("a - b", "a + (a - b)", "", "the term {a} appears twice"),
    ("(a + b) * c", "a + b * c", "", "the parentheses around a sum are missing"),
    ("(a - b) * c", "a - b * c", "", "the parentheses around a sum are missing"),
    ("(a + b) / c", "a + b / c", "", "the parentheses around a sum are missing"),
    ("(a - b) / c", "a - b / c", "", "the parentheses around a sum are missing"),
    ("a * b", "b", "", "the factor {a} is left out"),
    ("a * b", "a * b * b", "", "the factor {b} appears twice"),
    ("a / b", "a / b / b", "", "the divisor {b} appears twice"),
    ("a ** b", "a ** -b", "", "a power has the wrong sign"),
    ("a ** b", "a", "", "a power is left out"),
    ("a & b", "b", "", "the condition {a} is left out"),
    # divided
    ("a", "a / b", "the division by {b} is too much"),
    ("a * b", "a / b", "it is divided by {b} instead of multiplied", DIVIDED),
    ("b / a", "a / b", TURNED, TURNED),
    ("a // b", "a / b", "the quotient of {a} and {b} must be rounded down"),
    # added
    ("a", "a + b", "the term {b} is too much"),
    ("b", "a + b", "the term {a} is too much"),
    ("b - a", "a + b", "the sign of the term {a} is wrong"),
    ("a * b", "a + b", "{a} and {b} are added instead of multiplied"),
    # subtracted
    ("a", "a - b", "the term {b} is too much"),
    ("-b", "a - b", "the term {a} is too much"),
    ("b - a", "a - b", "{a} and {b} are exchanged in the difference"),
    ("-a - b", "a - b", "the sign of {a} is wrong"),
    ("a * b", "a - b", "{a} and {b} are subtracted instead of multiplied"),
    # multiplied
    ("a", "a * b", "the factor {b} is too much"),
    ("b", "a * b", "the factor {a} is too much"),
    ("a / b", "a * b", "it is multiplied by {b} instead of divided", MULTIPLIED),
    ("b / a", "a * b", "it is multiplied by {a} instead of divided"),
    ("a + b", "a * b", "{a} and {b} are multiplied instead of added"),
    ("a - b", "a * b", "{a} and {b} are multiplied instead of subtracted"),
    ("a @ b", "a * b", "{a} and {b} are multiplied entry by entry instead of as matrices"),
    ("a ** b", "a * b", "{a} and {b} are multiplied instead of used as base and power"),
    # multiplied as matrices
    ("b @ a", "a @ b", "in the product of {a} and {b}, the two matrices are exchanged"),
    ("a.swapaxes(-1, -2) @ b", "a @ b", "in the product of {a} and {b}, the first matrix is not transposed"),
    ("a @ b.swapaxes(-1, -2)", "a @ b", "in the product of {a} and {b}, the second matrix is not transposed"),
    ("b.swapaxes(-1, -2) @ a", "a @ b", EXCHANGED),
    ("b @ a.swapaxes(-1, -2)", "a @ b", EXCHANGED),
    ("b.swapaxes(-1, -2) @ a.swapaxes(-1, -2)", "a @ b", "the product of {a} and {b} is transposed"),
    ("a", "a @ b", "the product with {b} is too much"),
    ("b", "a @ b", "the product with {a} is too much"),
    ("a * b", "a @ b", "in the product of {a} and {b}, matrices are multiplied instead of entries"),
    # other operations
    ("a", "a ** b", "the power of {a} is too much"),
    ("a ** -b", "a ** b", "the power of {a} has the wrong sign"),
    *((f"a ** {power}", "a ** b", "{a} is raised to the wrong power") for power in POWERS),
    ("b ** a", "a ** b", "{a} and {b} are exchanged in the power"),
    ("a * b", "a ** b", "a power is used instead of a product"),
    ("a / b", "a // b", "// rounds the quotient of {a} and {b} down, and the exact quotient is needed"),
    ("a % b", "a // b", "// is used instead of %"),
    ("a // b", "a % b", "% is used instead of //"),
    ("a | b", "a & b", "& is used instead of |"),
    ("a", "a & b", "the condition {b} is too much"),
    ("b", "a & b", "the condition {a} is too much"),
    ("a & b", "a | b", "| is used instead of &"),
    ("a", "a | b", "the condition {b} is too much"),
    ("b", "a | b", "the condition {a} is too much"),
)
CALLS = _operators(
    ("a.sum(*p, **k)", "a.mean(*p, **k)", "", "it is averaged where it should be a sum"),
    ("a.mean(*p, **k)", "a.sum(*p, **k)", "", "it is summed where it should be a mean"),
    ("a.sum(*p, **k)", "a[0]", "", "only the first entry is used instead of the sum over all entries"),
    *(
        (f"a.{name}(*p, **k)", f"a.{name}({axis}, **k)", "", OTHER_AXIS.format(name, over))
        for name in ("sum", "mean")
        for axis, over in OVER.items()
    ),
    *((f"a.{name}(*p, **k)", "a", "", f"{{A}} is used without its {name}") for name in METHODS),
    ("a.swapaxes(*p, **k)", "a", "", "{A} is not transposed"),
    ("m.where(c, a, b, **k)", "m.where(c, b, a, **k)", "", "the two cases are exchanged"),
    ("f(a, **k)", "a[0]", "", "only the first of {A} is used instead of {CALLED}"),
    ("f(a, b)", "f(b, a)", "", "the two arguments of {CALLED} are exchanged"),
    *(  # min for max, np.sin for np.cos
        (f"{call % right}(*p, **k)", f"{call % wrong}(*p, **k)", "", f"{wrong} is used instead of {right}")
        for pair in (("min", "max"), ("sin", "cos"))
        for right, wrong in (pair, pair[::-1])
        for call in ("%s", "m.%s")
    ),
)
VALUES = _operators(
    *((f"a[{part}]", "a", "", WITHOUT_SLICE) for part in ("b:c", "b:", ":c", "b:c:d", "::d")),
    ("[a, b]", "[b, a]", "", "two elements of a list are in the wrong order"),
)
STEPS = _operators(
    ("a += b", "a = b", "", OVERWRITTEN),
    ("a += b", "pass", "", LEFT_OUT),
    ("a += b", "a -= b", OPPOSITE_STEP, "the sign of a step is wrong"),
    ("a -= b", "a = -b", "", OVERWRITTEN),
    ("a -= b", "pass", "", LEFT_OUT),
    ("a -= b", "a += b", OPPOSITE_STEP, "the sign of a step is wrong"),
    ("a *= b", "a /= b", OPPOSITE_STEP),
    ("a *= b", "pass", "", LEFT_OUT),
    ("a /= b", "a *= b", OPPOSITE_STEP),
    ("a /= b", "pass", "", LEFT_OUT),
    ("np.add.at(a, i, b)", "a[i] = b", "", KEEPS_ONE),
    (
        "np.add.at(a, i, b)",
        "a[i] += b",
        "of equal indices only one is added by [...] +=",
        ADDS_ONCE,
    ),
    ("f(*p, **k)", "pass", "", LEFT_OUT),
)
TABLE = (*MISSING_VALUES, *OFTEN_MISSING, *OPERATIONS, *CALLS, *VALUES, *STEPS)

# code and the same in other words, as a person writes it. The axes must be two for some: the search tries it
SIMPLER = (
    ("a.swapaxes(-1, -2).swapaxes(-1, -2)", "a"),
    ("a.T.swapaxes(-1, -2)", "a"),
    ("a.swapaxes(-1, -2).T", "a"),
    ("a.T.T", "a"),
    ("a.swapaxes(-1, -2)", "a.T"),
    ("--a", "a"),
    ("not not a", "a"),
    ("~~a", "a"),
    ("a - -b", "a + b"),
    ("a + -b", "a - b"),
    ("-a + b", "b - a"),
    ("a + b - b", "a"),
    ("a - b + b", "a"),
    ("1 - (1 - a)", "a"),
    ("a * b / b", "a"),
    ("a / b * b", "a"),
    ("2 * (a / 2)", "a"),
    ("2 * a / 2", "a"),
    ("a * 1", "a"),
    ("1 * a", "a"),
    ("a / 1", "a"),
    ("a ** 1", "a"),
    ("a ** 1.0", "a"),
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

# other operations with the same operands, the first of those that the grader makes: such as a - b for a + b
OPPOSITE: dict[type[ast.operator], type[ast.operator]] = {}
for _row in sorted(OPERATIONS, key=lambda row: not row.made):
    match parsed(_row.right), parsed(_row.wrong):
        case ast.BinOp(ast.Name("a"), _right, ast.Name("b")), ast.BinOp(ast.Name("a"), _wrong, ast.Name("b")):
            OPPOSITE.setdefault(type(_right), type(_wrong))


def repairs(table: Sequence[Operator], node: ast.AST) -> Iterator[Reading]:
    """Yield the right code for a node that may be the wrong code of a table, and what is then wrong."""
    for row in table:
        if row.found and (parts := matched(row.wrong, node)) is not None:
            words = {letter: shown(part) for letter, part in parts.items()}
            new = filled(row.right, parts)
            is_step = isinstance(node, ast.stmt) and isinstance(new, ast.expr)
            yield row.found.format(**words), ast.Expr(new) if is_step else new


def simplifications(made: Edit) -> Iterator[Edit]:
    """Yield the edits that simplify the statement of an edit."""
    for site in sites_in(made.statement) if made.statement else ():
        for code, simpler in SIMPLER:
            if (parts := matched(code, site.node)) is not None:
                yield replace(site.edit("", filled(simpler, parts)), function=made.function)
