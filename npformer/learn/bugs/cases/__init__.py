"""All bugs of the zoo, in the order of their numbers."""

from npformer.learn.bugs.cases.accumulation import ACCUMULATION
from npformer.learn.bugs.cases.adam import ADAM
from npformer.learn.bugs.cases.attention import ATTENTION
from npformer.learn.bugs.cases.beam_search import BEAM_SEARCH
from npformer.learn.bugs.cases.checkpointing import CHECKPOINTING
from npformer.learn.bugs.cases.cross_entropy import CROSS_ENTROPY
from npformer.learn.bugs.cases.decoder import DECODER
from npformer.learn.bugs.cases.dropout import DROPOUT
from npformer.learn.bugs.cases.embedding import EMBEDDING
from npformer.learn.bugs.cases.hard_attention import HARD_ATTENTION
from npformer.learn.bugs.cases.language_model import LANGUAGE_MODEL
from npformer.learn.bugs.cases.latent_attention import LATENT_ATTENTION
from npformer.learn.bugs.cases.layer_norm import LAYER_NORM
from npformer.learn.bugs.cases.linear import LINEAR
from npformer.learn.bugs.cases.local_attention import LOCAL_ATTENTION
from npformer.learn.bugs.cases.padding import PADDING
from npformer.learn.bugs.cases.positions import POSITIONS
from npformer.learn.bugs.cases.precision import PRECISION
from npformer.learn.bugs.cases.recurrent import RECURRENT
from npformer.learn.bugs.cases.relative import RELATIVE
from npformer.learn.bugs.cases.rotary_decoding import ROTARY_DECODING
from npformer.learn.bugs.cases.rotary_sign import ROTARY_SIGN
from npformer.learn.bugs.cases.rotary_values import ROTARY_VALUES
from npformer.learn.bugs.cases.shared_layer import SHARED_LAYER
from npformer.learn.bugs.cases.split_heads import SPLIT_HEADS
from npformer.learn.bugs.cases.tied_weights import TIED_WEIGHTS
from npformer.learn.bugs.cases.weight_decay import WEIGHT_DECAY
from npformer.learn.bugs.cases.window import WINDOW_MASK

ALL = (
    LINEAR, LAYER_NORM, EMBEDDING, CROSS_ENTROPY, DROPOUT, ADAM, TIED_WEIGHTS, SHARED_LAYER, SPLIT_HEADS,
    ATTENTION, LANGUAGE_MODEL, POSITIONS, PADDING, DECODER, CHECKPOINTING, ACCUMULATION, PRECISION,
    BEAM_SEARCH, RECURRENT, LOCAL_ATTENTION, HARD_ATTENTION, LATENT_ATTENTION,
    RELATIVE, ROTARY_VALUES, ROTARY_SIGN, ROTARY_DECODING, WINDOW_MASK, WEIGHT_DECAY,
)  # fmt: skip
