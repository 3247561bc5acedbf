"""The exercises, a file a topic."""

from npformer.exercises.topics.attention import ATTENTION
from npformer.exercises.topics.beginnings import BEGINNINGS
from npformer.exercises.topics.decoding import DECODING
from npformer.exercises.topics.embeddings import EMBEDDINGS
from npformer.exercises.topics.hard import HARD
from npformer.exercises.topics.heads import HEADS
from npformer.exercises.topics.latent import LATENT
from npformer.exercises.topics.layers import LAYERS
from npformer.exercises.topics.local import LOCAL
from npformer.exercises.topics.losses import LOSSES
from npformer.exercises.topics.recurrent import RECURRENT
from npformer.exercises.topics.relative import RELATIVE
from npformer.exercises.topics.stacks import STACKS
from npformer.exercises.topics.training import TRAINING
from npformer.exercises.topics.translation import TRANSLATION

TOPICS = (
    BEGINNINGS,
    EMBEDDINGS,
    ATTENTION,
    HEADS,
    LAYERS,
    STACKS,
    LOSSES,
    TRAINING,
    DECODING,
    RECURRENT,
    LOCAL,
    HARD,
    LATENT,
    RELATIVE,
    TRANSLATION,
)
ALL = tuple(exercise for topic in TOPICS for exercise in topic)
