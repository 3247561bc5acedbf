"""What the corpus is made of: a sentence in both languages, and which words decide an ambiguous one."""

from dataclasses import dataclass
from typing import Literal

from npformer.data.corpus.french import Gender

Family = Literal["plain", "it", "bank", "document"]


@dataclass(frozen=True)
class Reference:
    """Where an ambiguous English word stands, what decides its French, and what the right French is.

    English positions count in english.split(), French ones in tokenize(french, elision=True).
    """

    word: int  # where it, or bank, stands
    deciders: tuple[int, ...]  # the English words that decide: tired for it, river for bank
    right: str  # il or elle, rive or banque
    wrong: str  # the other of the two
    answer: int  # where `right` stands among the French tokens
    antecedent: int | None = None  # for it: the noun that it stands for
    gender: Gender | None = None  # for it: that noun's gender in French


@dataclass(frozen=True)
class Pair:
    """An English sentence and its French translation.

    combination holds the two words (as a dictionary lists them) that training sentences never bring together;
    it is () for the sentences of training and validation.
    """

    english: str
    french: str
    family: Family
    reference: Reference | None = None
    combination: tuple[str, str] | tuple[()] = ()
