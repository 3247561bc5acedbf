"""The classes of the grammar's words, and functions that read tables of words."""

from dataclasses import dataclass, replace
from typing import Literal, cast

from npformer.data.corpus.french import Gender

Person = Literal["i", "he", "we", "they"]
PERSONS: tuple[Person, ...] = ("i", "he", "we", "they")

# The verbs whose past is built with être, so that the participle agrees with the subject: elle est allée.
_WITH_ETRE = frozenset({"allé", "arrivé", "entré", "resté"})


@dataclass(frozen=True)
class Noun:
    """A noun and its gender. If `counted`, sentences may use its plural."""

    english: str
    french: str
    gender: Gender
    counted: bool = False


@dataclass(frozen=True)
class Adjective:
    """An adjective, in French in the masculine singular. If `before`, it precedes the noun in French."""

    english: str
    french: str
    before: bool = False


@dataclass(frozen=True)
class Verb:
    """A verb with the words that follow it in each language: wait near, attendre près de.

    present holds the French forms after je, il, nous and ils.
    """

    english: str
    past: str
    present: tuple[str, ...]
    participle: str
    infinitive: str
    english_after: tuple[str, ...] = ()
    french_after: tuple[str, ...] = ()

    @property
    def with_etre(self) -> bool:
        """True if the past is formed with être, not avoir."""
        return self.participle in _WITH_ETRE

    def french_present(self, person: Person) -> str:
        """Return the present tense after je (i), il (he), nous (we) or ils (they)."""
        return self.present[PERSONS.index(person)]

    def before(self, verb: "Verb") -> "Verb":
        """Return this verb with an infinitive after it: want to cross, vouloir traverser."""
        return replace(
            self,
            english_after=(*self.english_after, verb.english, *verb.english_after),
            french_after=(*self.french_after, verb.infinitive, *verb.french_after),
        )


def nouns(table: str) -> dict[str, Noun]:
    """Return nouns by their English, from lines of: english | french | gender | s (if the plural is used)."""
    return {
        english: Noun(english, french, cast(Gender, gender), counted=plural == ["s"])
        for english, french, gender, *plural in table_rows(table)
    }


def adjectives(table: str) -> dict[str, Adjective]:
    """Return adjectives by their English, from lines of: english | french | before (the noun)."""
    return {
        english: Adjective(english, french, before == ["before"])
        for english, french, *before in table_rows(table)
    }


def verbs(table: str) -> dict[str, Verb]:
    """Return verbs by their English.

    A line is: english | past | present | participle | infinitive | the French words that follow.
    """
    table_of_verbs = {}
    for english, past, present, participle, infinitive, *after in table_rows(table):
        base, *english_after = english.split()
        french_after = tuple(after[0].split()) if after else ()
        table_of_verbs[english] = Verb(
            base, past, tuple(present.split()), participle, infinitive, tuple(english_after), french_after
        )
    return table_of_verbs


def table_rows(table: str) -> list[list[str]]:
    """Return the cells of a table in the source, one list for each line. Bars separate cells."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]
