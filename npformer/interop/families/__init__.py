"""The families of models whose folders npformer reads and writes, one file for each."""

from npformer.errors import Registry
from npformer.interop.families.bart import BART, MBART
from npformer.interop.families.bert import BERT
from npformer.interop.families.distilbert import DISTILBERT
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.gemma import GEMMA
from npformer.interop.families.gemma2 import GEMMA2
from npformer.interop.families.gemma3 import GEMMA3
from npformer.interop.families.gpt2 import GPT2
from npformer.interop.families.gpt_neox import GPT_NEOX
from npformer.interop.families.llama import LLAMA
from npformer.interop.families.marian import MARIAN
from npformer.interop.families.mistral import MISTRAL
from npformer.interop.families.mixtral import MIXTRAL
from npformer.interop.families.olmo2 import OLMO2
from npformer.interop.families.opt import OPT
from npformer.interop.families.phi3 import PHI3
from npformer.interop.families.qwen2 import QWEN2
from npformer.interop.families.qwen3 import QWEN3
from npformer.interop.families.qwen3_moe import QWEN3_MOE
from npformer.interop.families.roberta import CAMEMBERT, ROBERTA, XLM_ROBERTA
from npformer.interop.families.smollm3 import SMOLLM3
from npformer.interop.families.t5 import T5
from npformer.interop.families.vit import VIT

FAMILIES: Registry[Family] = Registry("family of models")
_DECODERS = (GPT2, OPT, LLAMA, QWEN2, MISTRAL, PHI3, QWEN3, OLMO2, SMOLLM3, GPT_NEOX, GEMMA, GEMMA2, GEMMA3)
_MIXTURES = (MIXTRAL, QWEN3_MOE)
_ENCODERS = (BERT, DISTILBERT, ROBERTA, XLM_ROBERTA, CAMEMBERT)
for _family in (*_DECODERS, *_MIXTURES, *_ENCODERS, MARIAN, BART, MBART, T5, VIT):
    FAMILIES.register(_family.name, _family)

__all__ = ["FAMILIES", "Family", "WeightRow"]
