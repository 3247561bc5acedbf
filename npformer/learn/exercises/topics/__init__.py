"""The exercises, one file for each topic."""

from npformer.learn.exercises.topics.answers import ANSWERS
from npformer.learn.exercises.topics.attention import ATTENTION
from npformer.learn.exercises.topics.beginnings import BEGINNINGS
from npformer.learn.exercises.topics.decoding import DECODING
from npformer.learn.exercises.topics.embeddings import EMBEDDINGS
from npformer.learn.exercises.topics.generation import GENERATION
from npformer.learn.exercises.topics.hard import HARD
from npformer.learn.exercises.topics.heads import HEADS
from npformer.learn.exercises.topics.inside import INSIDE
from npformer.learn.exercises.topics.latent import LATENT
from npformer.learn.exercises.topics.layers import LAYERS
from npformer.learn.exercises.topics.local import LOCAL
from npformer.learn.exercises.topics.losses import LOSSES
from npformer.learn.exercises.topics.newer import NEWER
from npformer.learn.exercises.topics.recurrent import RECURRENT
from npformer.learn.exercises.topics.relative import RELATIVE
from npformer.learn.exercises.topics.stacks import STACKS
from npformer.learn.exercises.topics.today import TODAY
from npformer.learn.exercises.topics.training import TRAINING
from npformer.learn.exercises.topics.translation import TRANSLATION

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
    INSIDE,
    RECURRENT,
    LOCAL,
    HARD,
    LATENT,
    RELATIVE,
    TRANSLATION,
    TODAY,
    GENERATION,
    NEWER,
    ANSWERS,
)
ALL = tuple(exercise for topic in TOPICS for exercise in topic)
