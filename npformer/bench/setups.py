"""What the bench measures: four models of growing size, each with one batch of invented sentences."""

from dataclasses import dataclass

import numpy as np

from npformer.data.batches import Batch
from npformer.data.vocabulary import END, PAD, UNK
from npformer.settings import choose_preset
from npformer.transformer import TransformerConfig

DROPOUT = 0.1  # everywhere nn.Transformer has it, and on the embeddings
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
    words: int  # in either vocabulary
    sentences: int
    length: int  # of the longest sentence; the shortest has seven tenths of it
    tied: bool  # one table for both languages and the output, which then has no bias

    def config(self) -> TransformerConfig:
        """The same model in npformer's settings."""
        return TransformerConfig(
            source_vocab=self.words,
            target_vocab=self.words,
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
        """Its batch: always the same, whatever is measured on it.

        Shapes: every array (B, T), B sentences padded to length T.
        """
        rng = np.random.default_rng(SEED)
        source, target = self._sentences(rng), self._sentences(rng)
        first = np.full((self.sentences, 1), UNK)  # one word that begins every translation
        return Batch(source, np.concatenate([first, target[:, :-1]], 1), target)

    def _sentences(self, rng: np.random.Generator) -> np.ndarray:
        """Words as frequent as in a language, by Zipf's law, in sentences of .7 T to T. Shapes: -> (B, T)."""
        size, last = (self.sentences, self.length), self.words - 1
        ids = np.minimum(rng.zipf(1.2, size), last - END) + END
        rare = ids == last  # beyond the vocabulary: any of its words
        ids[rare] = rng.integers(END + 1, self.words, rare.sum())
        lengths = rng.integers(int(0.7 * self.length), self.length + 1, self.sentences)
        lengths[0] = self.length
        return np.where(np.arange(self.length) < lengths[:, None], ids, PAD)


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("tiny", 128, 256, 4, 4, 10000, 128, 16, tied=False),
        Setup("small", 256, 1024, 8, 3, 8000, 64, 32, tied=False),
        Setup("base8k", 512, 2048, 8, 6, 8000, 16, 64, tied=True),
        Setup("base37k", 512, 2048, 8, 6, 37000, 16, 64, tied=True),
    )
}


def choose_setups(names: list[str] | None) -> list[Setup]:
    """The setups of these names, or all. Errors: UserError for an unknown name, with the nearest."""
    return [SETUPS[choose_preset(name, list(SETUPS), "setup")] for name in dict.fromkeys(names or SETUPS)]
