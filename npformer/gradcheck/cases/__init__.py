"""What `npformer gradcheck` checks: every component with every option, and whole models.

A case is built anew for each check, at float64, in small sizes, with padding and dropout on.
"""

from npformer.gradcheck.cases.case import Case
from npformer.gradcheck.cases.hard import hard_cases
from npformer.gradcheck.cases.language import batch_norm_cases, language_model_cases
from npformer.gradcheck.cases.latent import latent_cases
from npformer.gradcheck.cases.layers import layer_cases
from npformer.gradcheck.cases.luong import look_up_cases, luong_cases, similarity_cases
from npformer.gradcheck.cases.models import (
    model_cases,
    multi_head_cases,
    recurrent_model_cases,
    small_config,
    stack_cases,
)
from npformer.gradcheck.cases.pairs import attention_cases, pair_cases
from npformer.gradcheck.cases.recurrent import recurrent_cases
from npformer.gradcheck.cases.relative import relative_cases
from npformer.gradcheck.cases.universal import universal_cases

__all__ = ["Case", "all_cases", "small_config"]


def all_cases() -> list[Case]:
    """Every case, from the simplest to the whole models."""
    return [
        *pair_cases(),
        *attention_cases(),
        *layer_cases(),
        *batch_norm_cases(),
        *recurrent_cases(),
        *multi_head_cases(),
        *look_up_cases(),
        *similarity_cases(),
        *luong_cases(),
        *hard_cases(),
        *latent_cases(),
        *relative_cases(),
        *stack_cases(),
        *universal_cases(),
        *model_cases(),
        *language_model_cases(),
        *recurrent_model_cases(),
    ]
