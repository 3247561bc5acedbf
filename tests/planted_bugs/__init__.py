"""Planted bugs: single wrong lines in backward passes, decoding and training, which the tests must catch.

python tests/planted_bugs/run.py plants each in a copy of the package and runs the tests on it.

Some changes look like bugs but are correct, so they are not in the list:
- FeedForward.backward with dropout and activation exchanged: both multiply element by element, and the
  order of factors does not matter.
- attention_backward without the mask on the gradient, if the fill is -inf: the weight is 0, and
  softmax_backward multiplies by it. With a finite fill it is a bug, and is in the list.
- mix_states_backward with a gradient for the last step's p: this gradient is the last weight's minus
  itself, so 0.
"""

from planted_bugs.attention import ATTENTION
from planted_bugs.bert import BERT
from planted_bugs.bug import KINDS, Bug, NoLongerApplies
from planted_bugs.capstone import CAPSTONE
from planted_bugs.decoder_parts import DECODER_PARTS
from planted_bugs.evaluation import EVALUATION
from planted_bugs.fast_decoding import FAST_DECODING
from planted_bugs.gpu_kernels import GPU_KERNELS
from planted_bugs.hard import HARD
from planted_bugs.kernels import KERNELS
from planted_bugs.language import LANGUAGE
from planted_bugs.latent import LATENT
from planted_bugs.layers import LAYERS
from planted_bugs.losses import LOSSES
from planted_bugs.luong import LUONG
from planted_bugs.other_models import OTHER_MODELS
from planted_bugs.pairs import PAIRS
from planted_bugs.recurrent import RECURRENT
from planted_bugs.recurrent_model import RECURRENT_MODEL
from planted_bugs.relative import RELATIVE
from planted_bugs.training import TRAINING
from planted_bugs.transformer import TRANSFORMER
from planted_bugs.universal import UNIVERSAL

BUGS = (
    *PAIRS,
    *LOSSES,
    *ATTENTION,
    *LAYERS,
    *RECURRENT,
    *RECURRENT_MODEL,
    *LUONG,
    *LATENT,
    *HARD,
    *KERNELS,
    *GPU_KERNELS,
    *RELATIVE,
    *TRANSFORMER,
    *LANGUAGE,
    *BERT,
    *DECODER_PARTS,
    *UNIVERSAL,
    *TRAINING,
    *OTHER_MODELS,
    *EVALUATION,
    *FAST_DECODING,
    *CAPSTONE,
)

__all__ = ["BUGS", "KINDS", "Bug", "NoLongerApplies"]
