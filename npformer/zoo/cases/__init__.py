"""All bugs of the zoo, in the order of their numbers."""

from npformer.zoo.cases.accumulation import ACCUMULATION
from npformer.zoo.cases.adam import ADAM
from npformer.zoo.cases.attention import ATTENTION
from npformer.zoo.cases.beam_search import BEAM_SEARCH
from npformer.zoo.cases.checkpointing import CHECKPOINTING
from npformer.zoo.cases.cross_entropy import CROSS_ENTROPY
from npformer.zoo.cases.decoder import DECODER
from npformer.zoo.cases.dropout import DROPOUT
from npformer.zoo.cases.embedding import EMBEDDING
from npformer.zoo.cases.hard_attention import HARD_ATTENTION
from npformer.zoo.cases.language_model import LANGUAGE_MODEL
from npformer.zoo.cases.latent_attention import LATENT_ATTENTION
from npformer.zoo.cases.layer_norm import LAYER_NORM
from npformer.zoo.cases.linear import LINEAR
from npformer.zoo.cases.local_attention import LOCAL_ATTENTION
from npformer.zoo.cases.padding import PADDING
from npformer.zoo.cases.positions import POSITIONS
from npformer.zoo.cases.precision import PRECISION
from npformer.zoo.cases.recurrent import RECURRENT
from npformer.zoo.cases.relative import RELATIVE
from npformer.zoo.cases.shared_layer import SHARED_LAYER
from npformer.zoo.cases.split_heads import SPLIT_HEADS
from npformer.zoo.cases.tied_weights import TIED_WEIGHTS

ALL = (
    LINEAR, LAYER_NORM, EMBEDDING, CROSS_ENTROPY, DROPOUT, ADAM, TIED_WEIGHTS, SHARED_LAYER, SPLIT_HEADS,
    ATTENTION, LANGUAGE_MODEL, POSITIONS, PADDING, DECODER, CHECKPOINTING, ACCUMULATION, PRECISION,
    BEAM_SEARCH, RECURRENT, LOCAL_ATTENTION, HARD_ATTENTION, LATENT_ATTENTION,
    RELATIVE,
)  # fmt: skip
