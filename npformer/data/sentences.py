"""Sentences of one language to batches: for models that fill gaps, and for models that go on."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npformer.data.batches import Ids, pad
from npformer.data.vocabulary import END, PAD, SPECIALS, START, TextCodec, Vocabulary
from npformer.errors import UserError

MASK = "[MASK]"  # stands where a word is hidden; tokenize makes three words of it, so no text can forge it

# of the words that are to be named, how many are hidden, and how many become another word; the rest stays
HIDDEN, REPLACED = 0.8, 0.1


class SentenceBatch(NamedTuple):
    """Sentences for one training step, padded to one length.

    ids (B, T) is what is read; target_out (B, T) is the word to be named at each place, PAD where none is.
    """

    ids: Ids
    target_out: Ids

    @property
    def inputs(self) -> tuple[Ids]:
        """What the model reads."""
        return (self.ids,)

    @property
    def tokens(self) -> int:
        """The number of words to be named."""
        return int((self.target_out != PAD).sum())


def next_words(sentences: Sequence[Sequence[int]]) -> SentenceBatch:
    """A batch for NextWordModel: the word at each place is the one that comes next, in the end END."""
    return SentenceBatch(
        ids=pad([[START, *words] for words in sentences]),
        target_out=pad([[*words, END] for words in sentences]),
    )


def hidden_words(
    sentences: Sequence[Sequence[int]], mask_id: int, rng: np.random.Generator, *, share: float = 0.15
) -> SentenceBatch:
    """A batch for MaskedWordModel: a share of the words, drawn from rng, is to be named.

    Of these 80 % are hidden behind mask_id, 10 % become a random word and 10 % stay: so the model cannot
    tell which words it will be asked, and keeps every one in mind. mask_id is the last id, and the words
    are those between the special words and it. At least one is hidden.
    Errors: UserError for sentences without any word. Source: Devlin et al. 2019, section 3.1, task 1.
    """
    ids = pad([[*words, END] for words in sentences])  # (B, T)
    is_word = ids >= len(SPECIALS)
    if not is_word.any():
        raise UserError("the sentences hold no word that could be hidden: give some with words")
    # one number decides over a word: below share · 0.8 it is hidden, and so on
    u = np.where(is_word, rng.random(ids.shape), 1)
    u.flat[u.argmin()] = 0
    read = np.where(u < share * HIDDEN, mask_id, ids)
    replaced = (u >= share * HIDDEN) & (u < share * (HIDDEN + REPLACED))
    read = np.where(replaced, rng.integers(len(SPECIALS), mask_id, ids.shape), read)
    return SentenceBatch(read, target_out=np.where(u < share, ids, PAD))


def with_mask(codec: TextCodec) -> TextCodec:
    """The same codec with MASK as one more word, the last."""
    return TextCodec(Vocabulary((*codec.vocabulary.words, MASK)), codec.language, codec.lowercase)
