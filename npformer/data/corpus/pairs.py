"""A sentence pair of the corpus, and the words that resolve its ambiguity."""

from dataclasses import dataclass
from typing import Literal

from npformer.data.corpus.french import Gender

Family = Literal["plain", "it", "bank", "document"]


@dataclass(frozen=True)
class Reference:
    """The position of an ambiguous English word, the words that decide, and the right French word.

    English positions count in english.split(), French ones in tokenize(french, elision=True).
    """

    word: int  # the position of it or bank
    deciders: tuple[int, ...]  # the English words that decide: tired for it, river for bank
    right: str  # il or elle, rive or banque
    wrong: str  # the other of the two
    answer: int  # the position of `right` among the French tokens
    antecedent: int | None = None  # for it: the noun that it stands for
    gender: Gender | None = None  # for it: that noun's gender in French


@dataclass(frozen=True)
class Pair:
    """An English sentence and its French translation.

    For a sentence of the test part, `combination` has two of its words, in their dictionary forms, that never
    occur together in a training sentence. For all other sentences it is ().
    """

    english: str
    french: str
    family: Family
    reference: Reference | None = None
    combination: tuple[str, str] | tuple[()] = ()
