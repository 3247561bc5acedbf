"""The setups of the benchmark: four models of growing size, each with one batch of random sentences."""

from dataclasses import dataclass

import numpy as np

from npformer.data.loader import Batch
from npformer.data.vocabulary import END, PAD, UNK
from npformer.errors import Registry
from npformer.models.transformer import TransformerConfig

DROPOUT = 0.1  # everywhere where nn.Transformer has dropout, and on the embeddings
SMOOTHING = 0.1
LEARNING_RATE = 1e-4
BETAS, EPS = (0.9, 0.98), 1e-9  # of Adam
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


SETUPS = Registry[Setup]("setup")
for _setup in (
    Setup("tiny", 128, 256, 4, 4, 10000, 128, 16, tied=False),
    Setup("small", 256, 1024, 8, 3, 8000, 64, 32, tied=False),
    Setup("base8k", 512, 2048, 8, 6, 8000, 16, 64, tied=True),
    Setup("base37k", 512, 2048, 8, 6, 37000, 16, 64, tied=True),
):
    SETUPS.register(_setup.name, _setup)


def choose_setups(names: list[str] | None) -> list[Setup]:
    """Return the setups of these names, each once, or all setups.

    Raises:
        UserError: If there is no setup of a name. The message suggests the most similar name.
    """
    return [SETUPS.find(name) for name in dict.fromkeys(names or SETUPS.names())]
