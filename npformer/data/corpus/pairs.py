"""A sentence pair of the corpus, and the words that resolve its ambiguity."""

from dataclasses import dataclass
from typing import Literal

from npformer.data.corpus.french import Gender

Family = Literal["simple", "it", "bank", "document"]
HeldOut = Literal["words", "frame"]


@dataclass(frozen=True)
class Reference:
    """The position of an ambiguous English word, the words that decide, and the right French word.

    English positions count in english.split(), French ones in tokenize(french, elision=True).
    """

    word: int  # the position of it, they or bank
    deciders: tuple[int, ...]  # the English words that decide: tired for it, river for bank
    right: str  # il or elle, ils or elles, rive or banque
    wrong: str  # the other of the two
    answer: int  # the position of `right` among the French tokens
    antecedent: int | None = None  # for it and they: the noun that the pronoun stands for
    gender: Gender | None = None  # for it and they: that noun's gender in French


@dataclass(frozen=True)
class Pair:
    """An English sentence and its French translation.

    `constructions` names the constructions of which the sentence is made, such as a question or a relative
    clause. Together they are its frame. `held_out` tells why the sentence is in the test part, and
    `combination` what never occurs together in a training sentence:

    - "words": two of its words, in their dictionary forms. Its frame occurs in training.
    - "frame": two of its constructions. It contains no held-out pair of words.
    """

    english: str
    french: str
    family: Family
    reference: Reference | None = None
    constructions: tuple[str, ...] = ()
    held_out: HeldOut | None = None
    combination: tuple[str, str] | tuple[()] = ()
