"""Batches for masked language models, which fill gaps, and causal ones, which continue a text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npformer.data.codecs import TextCodec
from npformer.data.loader import Ids, pad
from npformer.data.vocabulary import END, PAD, SPECIALS, START, Vocabulary
from npformer.errors import UserError

MASK = "[MASK]"  # replaces a hidden word; tokenize splits it into three words, so no text can contain it

# of the tokens to predict, the share that is replaced by MASK, and the share that is replaced by a random
# token; the others stay
HIDDEN, REPLACED = 0.8, 0.1


class SentenceBatch(NamedTuple):
    """Sentences for one training step, padded to one length.

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


def causal_batch(sentences: Sequence[Sequence[int]]) -> SentenceBatch:
    """Return a batch for CausalLanguageModel, which predicts the next token at each position."""
    return SentenceBatch(
        ids=pad([[START, *tokens] for tokens in sentences]),
        target_out=pad([[*tokens, END] for tokens in sentences]),
    )


def masked_batch(
    sentences: Sequence[Sequence[int]], mask_id: int, rng: np.random.Generator, *, share: float = 0.15
) -> SentenceBatch:
    """Return a batch for MaskedLanguageModel, which predicts a random share of the tokens.

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
