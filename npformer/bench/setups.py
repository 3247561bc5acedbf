"""The setups of the benchmark: translators and GPTs, each with one batch of random sentences."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.data.loader import Batch
from npformer.data.sentences import SentenceBatch
from npformer.data.vocabulary import END, PAD, UNK
from npformer.errors import Registry
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.transformer import Transformer, TransformerConfig
from npformer.training.optimizer import Adam, AdamW
from npformer.training.step import dropout_rngs

DROPOUT = 0.1  # everywhere where nn.Transformer has dropout, and on the embeddings
SMOOTHING = 0.1
LEARNING_RATE = 1e-4
BETAS, EPS = (0.9, 0.98), 1e-9  # of Adam
# of the GPTs, as in nanoGPT: Adam's and AdamW's settings, and the largest norm of the gradient
GPT_BETAS, GPT_EPS, WEIGHT_DECAY, CLIP_NORM = (0.9, 0.99), 1e-8, 0.1, 1.0
SEED = 0


@dataclass(frozen=True)
class Setup:
    """A model as nn.Transformer builds it, and the size of its batch."""

    name: str
    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int  # of the encoder, and of the decoder
    vocab_size: int  # of both vocabularies
    sentences: int
    length: int  # of the longest sentence, T; every other one has between .7 T and T tokens
    tied: bool  # one matrix for both embeddings and the output, which then has no bias

    model_class = Transformer
    clip_norm = None

    def build(self) -> Transformer:
        """Return the model."""
        return Transformer(self.config(), rng=np.random.default_rng(SEED))

    def optimizer(self, model: Transformer) -> Adam:
        """Return the optimizer of the model."""
        return Adam(model, betas=BETAS, eps=EPS)

    def rngs(self, number: int) -> list[np.random.Generator] | None:
        """Return the generators for dropout of the step with this number, from 1."""
        return dropout_rngs(SEED, number, 1)

    def config(self) -> TransformerConfig:
        """Return the configuration of the same model in npformer."""
        return TransformerConfig(
            source_vocab=self.vocab_size,
            target_vocab=self.vocab_size,
            d_model=self.d_model,
            d_ff=self.d_ff,
            n_heads=self.n_heads,
            n_layers=self.n_layers,
            max_length=self.length,
            final_norm=True,
            fused_projections=True,
            tied="all" if self.tied else "none",
            output_bias=not self.tied,
            dropout=DROPOUT,
            attention_dropout=DROPOUT,
            feed_forward_dropout=DROPOUT,
            label_smoothing=SMOOTHING,
        )

    def batch(self) -> Batch:
        """Return the batch of this setup, which is always the same.

        Shapes: every array (B, T), B sentences padded to length T.
        """
        rng = np.random.default_rng(SEED)
        source, target = self._sentences(rng), self._sentences(rng)
        first = np.full((self.sentences, 1), UNK)  # the first token of every translation
        return Batch(source, np.concatenate([first, target[:, :-1]], 1), target)

    def _sentences(self, rng: np.random.Generator) -> np.ndarray:
        """Return sentences (B, T) of .7 T to T tokens, with frequencies by Zipf's law."""
        size, last = (self.sentences, self.length), self.vocab_size - 1
        ids = np.minimum(rng.zipf(1.2, size), last - END) + END
        rare = ids == last  # at or beyond the end of the vocabulary: replaced by random ids
        ids[rare] = rng.integers(END + 1, self.vocab_size, rare.sum())
        lengths = rng.integers(int(0.7 * self.length), self.length + 1, self.sentences)
        lengths[0] = self.length
        return np.where(np.arange(self.length) < lengths[:, None], ids, PAD)


@dataclass(frozen=True)
class GPTSetup:
    """A GPT of nanoGPT's form, and the size of its batch. It has no dropout, no biases and no padding."""

    name: str
    d_model: int
    n_heads: int
    n_layers: int
    sentences: int
    length: int  # of each sentence, T, which is the context
    vocab_size: int = 66  # 65 characters, and PAD, which does not occur

    model_class = GPT
    clip_norm = CLIP_NORM

    @property
    def d_ff(self) -> int:
        """The width of the hidden layer of the feed-forward network."""
        return self.config().hidden_width

    def build(self) -> GPT:
        """Return the model."""
        return GPT(self.config(), rng=np.random.default_rng(SEED))

    def optimizer(self, model: GPT) -> AdamW:
        """Return the optimizer of the model."""
        return AdamW(model, betas=GPT_BETAS, eps=GPT_EPS, weight_decay=WEIGHT_DECAY)

    def rngs(self, number: int) -> None:
        """Return None, since there is no dropout."""

    def config(self) -> GPTConfig:
        """Return the configuration of the model."""
        return GPTConfig(
            vocab_size=self.vocab_size,
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            context=self.length,
            activation="gelu",
            bias=False,
        )

    def batch(self) -> SentenceBatch:
        """Return the batch of this setup, which is always the same. Shapes: both arrays (B, T)."""
        rng = np.random.default_rng(SEED)
        ids = rng.integers(PAD + 1, self.vocab_size, (self.sentences, self.length + 1))
        return SentenceBatch(ids[:, :-1], ids[:, 1:])


AnySetup = Setup | GPTSetup
SETUP_CLASSES: dict[str, Any] = {"Setup": Setup, "GPTSetup": GPTSetup}

TINY = Setup("tiny", 128, 256, 4, 4, 10000, 128, 16, tied=False)
SMALL = Setup("small", 256, 1024, 8, 3, 8000, 64, 32, tied=False)
BASE8K = Setup("base8k", 512, 2048, 8, 6, 8000, 16, 64, tied=True)
BASE37K = Setup("base37k", 512, 2048, 8, 6, 37000, 16, 64, tied=True)
GPT128 = GPTSetup("gpt128", 128, 4, 4, 12, 64)
GPT384 = GPTSetup("gpt384", 384, 6, 6, 8, 256)
GPT768 = GPTSetup("gpt768", 768, 12, 12, 8, 128)

SETUPS = Registry[AnySetup]("setup")
for _setup in (TINY, SMALL, BASE8K, BASE37K, GPT128, GPT384, GPT768):
    SETUPS.register(_setup.name, _setup)


def choose_setups(names: list[str] | None) -> list[AnySetup]:
    """Return the setups of these names, each once, or those of all translators.

    Raises:
        UserError: If there is no setup of a name. The message suggests the most similar name.
    """
    if names is None:
        return [setup for setup in map(SETUPS.find, SETUPS.names()) if isinstance(setup, Setup)]
    return [SETUPS.find(name) for name in dict.fromkeys(names)]
