"""The families of models whose folders npformer reads and writes, one file for each."""

from npformer.errors import Registry
from npformer.interop.families.bert import BERT, CAMEMBERT, DISTILBERT, ROBERTA, XLM_ROBERTA
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.gpt2 import GPT2
from npformer.interop.families.llama import LLAMA, QWEN2
from npformer.interop.families.marian import MARIAN

FAMILIES: Registry[Family] = Registry("family of models")
for _family in (GPT2, LLAMA, QWEN2, BERT, DISTILBERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, MARIAN):
    FAMILIES.register(_family.name, _family)

__all__ = ["FAMILIES", "Family", "WeightRow"]
