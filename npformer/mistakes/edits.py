"""All edits of some functions, the most likely mistakes first."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from npformer.mistakes.calls import of_all_transposes, of_calls, of_scans
from npformer.mistakes.expressions import (
    of_constants,
    of_counters,
    of_equal_numbers,
    of_formulas,
    of_jacobians,
    of_missing_ends,
    of_missing_expressions,
    of_missing_expressions_inside,
    of_missing_in_statements,
    of_missing_inside,
    of_missing_products,
    of_operations,
    of_shifted_comparisons,
    of_signs_and_sums,
)
from npformer.mistakes.names import (
    of_all_uses,
    of_expressions,
    of_names,
    of_repeated_names,
    of_repeated_uses,
    of_two_uses,
    of_variables,
)
from npformer.mistakes.scope import Scope
from npformer.mistakes.statements import (
    of_all_calls,
    of_all_operations,
    of_conditions,
    of_loops,
    of_misplaced_factors,
    of_opposites,
    of_order,
    of_statements,
)
from npformer.mistakes.syntax import Definition, Edit, Reading, Site, sites

Kind: TypeAlias = Callable[[Definition, Scope], Iterator[Edit]]


def edits(functions: Sequence[tuple[Definition, Scope]]) -> Iterator[Edit]:
    """Yield all edits of some functions with their scopes, the most likely first."""
    for kind in KINDS:
        for function, scope in functions:
            for edit in kind(function, scope):
                yield replace(edit, function=function, is_likely=kind not in RIGHT_BY_CHANCE)


def _at_each_site(readings: Callable[[Site, Scope], Iterator[Reading]]) -> Kind:
    """Return the kind of edits that a function reads from each node."""

    def kind(function: Definition, scope: Scope) -> Iterator[Edit]:
        for site in sites(function):
            for says, new in readings(site, scope):
                yield site.edit(says, new)

    return kind


WRONG = (
    of_formulas,
    of_opposites,
    of_operations,
    of_calls,
    of_constants,
    of_counters,
    of_conditions,
    of_statements,
)
NAMES = (of_names, of_shifted_comparisons, of_missing_ends)
MISSING = (of_missing_in_statements, of_missing_inside, of_scans, of_expressions)
RARE = (of_missing_expressions, of_missing_products, of_missing_expressions_inside)

OTHER_VARIABLES = _at_each_site(of_variables)
UNLIKELY = (*map(_at_each_site, MISSING), of_repeated_uses, of_two_uses, *map(_at_each_site, RARE))
KINDS: tuple[Kind, ...] = (
    of_jacobians,
    of_all_uses,
    of_loops,
    *map(_at_each_site, WRONG),
    of_all_transposes,
    of_all_operations,
    of_all_calls,
    OTHER_VARIABLES,
    *map(_at_each_site, NAMES),
    of_repeated_names,
    of_equal_numbers,
    of_order,
    of_misplaced_factors,
    _at_each_site(of_signs_and_sums),
    *UNLIKELY,
)
RIGHT_BY_CHANCE = (OTHER_VARIABLES, *UNLIKELY)  # kinds that often make some of the results right
