"""The cases of `npformer gradcheck`: every component with every option, and whole models.

Each check builds its component anew, in float64 and with small sizes, padding and dropout.
"""

from npformer.checking.cases.case import Case
from npformer.checking.cases.hard import hard_cases
from npformer.checking.cases.kernels import KernelCase, kernel_cases
from npformer.checking.cases.language import bert_cases, family_cases, gpt_cases, image_cases
from npformer.checking.cases.latent import latent_cases
from npformer.checking.cases.layers import batch_norm_cases, layer_cases
from npformer.checking.cases.models import (
    model_cases,
    multi_head_cases,
    recurrent_model_cases,
    small_config,
    stack_cases,
)
from npformer.checking.cases.pairs import attention_cases, pair_cases
from npformer.checking.cases.recurrent import (
    attend_cases,
    luong_cases,
    recurrent_cases,
    similarity_cases,
)
from npformer.checking.cases.relative import relative_cases
from npformer.checking.cases.universal import universal_cases, universal_model_cases

__all__ = ["Case", "KernelCase", "all_cases", "component_cases", "kernel_cases", "small_config"]


def all_cases() -> list[Case | KernelCase]:
    """Return every case: the components, and the kernels that replace some of them."""
    return [*component_cases(), *kernel_cases()]


def component_cases() -> list[Case]:
    """Return the cases of components, from the simplest pairs to the whole models."""
    return [
        *pair_cases(),
        *attention_cases(),
        *layer_cases(),
        *batch_norm_cases(),
        *recurrent_cases(),
        *multi_head_cases(),
        *attend_cases(),
        *similarity_cases(),
        *luong_cases(),
        *hard_cases(),
        *latent_cases(),
        *relative_cases(),
        *stack_cases(),
        *universal_cases(),
        *universal_model_cases(),
        *model_cases(),
        *gpt_cases(),
        *family_cases(),
        *bert_cases(),
        *image_cases(),
        *recurrent_model_cases(),
    ]
