"""What `npformer gradcheck` checks: every component with every option, and whole models.

A case is built anew for each check, at float64, in small sizes, with padding and dropout on.
"""

from npformer.gradcheck.cases.case import Case
from npformer.gradcheck.cases.layers import layer_cases
from npformer.gradcheck.cases.models import model_cases, multi_head_cases, small_config, stack_cases
from npformer.gradcheck.cases.pairs import attention_cases, pair_cases
from npformer.gradcheck.cases.recurrent import recurrent_cases

__all__ = ["Case", "all_cases", "small_config"]


def all_cases() -> list[Case]:
    """Every case, from the simplest to the whole models."""
    return [
        *pair_cases(),
        *attention_cases(),
        *layer_cases(),
        *recurrent_cases(),
        *multi_head_cases(),
        *stack_cases(),
        *model_cases(),
    ]
