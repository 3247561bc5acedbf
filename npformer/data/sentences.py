"""Batches of sentences without translations, and their loader.

They are for masked language models, which fill gaps. The loader makes the batches of each step anew, so that
other tokens are hidden when a sentence comes again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from npformer.data.codecs import TextCodec
from npformer.data.loader import DataLoader, Ids, pad, split_batch
from npformer.data.vocabulary import END, MASK, PAD, SPECIALS, Vocabulary
from npformer.errors import UserError

# of the tokens to predict, the share that is replaced by MASK, and the share that is replaced by a random
# token; the others stay
HIDDEN, REPLACED = 0.8, 0.1

Sentence = Sequence[int]  # token ids without START, END and PAD


class SentenceBatch(NamedTuple):
    """Sentences for one training step, padded to the same length.

    The model reads ids (B, T). target_out (B, T) is the token to predict at each position, or PAD for none.
    """

    ids: Ids
    target_out: Ids

    @property
    def inputs(self) -> tuple[Ids]:
        """The array that the model reads, in a tuple."""
        return (self.ids,)

    @property
    def tokens(self) -> int:
        """The number of tokens to predict."""
        return int((self.target_out != PAD).sum())

    def split(self, count: int) -> "list[SentenceBatch]":
        """Split the batch into `count` pieces, see `split_batch`."""
        return split_batch(self, count)


def masked_batch(
    sentences: Sequence[Sentence], mask_id: int, rng: np.random.Generator, *, share: float = 0.15
) -> SentenceBatch:
    """Return a batch for a masked language model, which predicts a random share of the tokens.

    Of these tokens, 80 % are replaced by mask_id, 10 % by a random token, and 10 % stay. The model therefore
    cannot know which tokens it has to predict, and needs a good representation of every token. At least one
    token is predicted.

    Args:
        sentences: The token ids of the sentences.
        mask_id: The id of MASK, which is the last id. The ids of words lie between SPECIALS and it.
        rng: The generator of the choices.
        share: The share of the tokens to predict.

    Raises:
        UserError: If the sentences contain no words.

    Source: Devlin et al. 2019, section 3.1, task 1.
    """
    ids = pad([[*tokens, END] for tokens in sentences])  # (B, T)
    is_word = ids >= len(SPECIALS)
    if not is_word.any():
        raise UserError("the sentences contain no word that could be hidden: give sentences with words")
    # one random number for each token decides: below share · 0.8 the token is hidden, below share · 0.9 it is
    # replaced, below share it stays and has to be predicted; from share on it is not predicted
    u = np.where(is_word, rng.random(ids.shape), 1)
    u.flat[u.argmin()] = 0
    read = np.where(u < share * HIDDEN, mask_id, ids)
    replaced = (u >= share * HIDDEN) & (u < share * (HIDDEN + REPLACED))
    read = np.where(replaced, rng.integers(len(SPECIALS), mask_id, ids.shape), read)
    return SentenceBatch(read, target_out=np.where(u < share, ids, PAD))


def with_mask(codec: TextCodec) -> TextCodec:
    """Return the codec with MASK as an additional, last word."""
    return TextCodec(Vocabulary((*codec.vocabulary.words, MASK)), codec.language, codec.lowercase)


# a function that makes a batch of sentences; the generator chooses the tokens to hide
MakeBatch = Callable[[Sequence[Sentence], np.random.Generator], SentenceBatch]


class SentenceLoader(DataLoader):
    """A data loader for sentences without translations, which makes each batch with its own generator.

    So other tokens are hidden each time that a sentence is read. The generators of a step depend only on the
    seed and on the number of the step, and those of `epoch`, for validation, are always the same.

    Args:
        sentences: The sentences.
        make: The function that makes a batch, such as one that calls masked_batch.
        seed: Determines the order of the sentences and the generators of the batches.
        batching: The other settings of a DataLoader: batch_size, batch_tokens and accumulate.
    """

    def __init__(
        self, sentences: Sequence[Sentence], make: MakeBatch, *, seed: int = 0, **batching: Any
    ) -> None:
        lengths = np.array([[len(ids) + 1] for ids in sentences], np.int64)  # (N, 1) with START or END
        super().__init__(sentences, lengths, seed=seed, **batching)
        self.make = make

    def _batch(self, examples: Sequence[Sentence], step: int, number: int) -> SentenceBatch:
        return self.make(examples, batch_rng(self.seed, step, number))


def batch_rng(seed: int, step: int, batch: int) -> np.random.Generator:
    """Return the generator that chooses the hidden tokens of a batch. It depends on the three numbers only.

    The seed has a fourth number, so that the generator differs from those of dropout, whose seeds have three.

    Args:
        seed: The seed of the run.
        step: The number of the step, from 1; 0 for evaluation.
        batch: The number of the batch in the step, from 0.
    """
    return np.random.default_rng([seed, batch, step, 1])
