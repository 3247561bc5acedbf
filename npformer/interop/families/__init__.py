"""The families of models whose folders npformer reads and writes, one file for each."""

from npformer.errors import Registry
from npformer.interop.families.bert import BERT, DISTILBERT
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.gpt2 import GPT2
from npformer.interop.families.llama import LLAMA, QWEN2
from npformer.interop.families.marian import MARIAN
from npformer.interop.families.mistral import MISTRAL
from npformer.interop.families.opt import OPT
from npformer.interop.families.phi3 import PHI3

FAMILIES: Registry[Family] = Registry("family of models")
for _family in (GPT2, OPT, LLAMA, QWEN2, MISTRAL, PHI3, BERT, DISTILBERT, MARIAN):
    FAMILIES.register(_family.name, _family)

__all__ = ["FAMILIES", "Family", "WeightRow"]
