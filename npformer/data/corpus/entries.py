"""What the grammar knows of a word, and how the tables of words are read."""

from dataclasses import dataclass
from typing import Literal, cast

from npformer.data.corpus.french import Gender
from npformer.tables import rows

Person = Literal["i", "he", "we", "they"]
PERSONS: tuple[Person, ...] = ("i", "he", "we", "they")

# The verbs whose past is built with être, so that the participle agrees with the subject: elle est allée.
_WITH_ETRE = frozenset({"allé", "arrivé", "entré", "resté"})


@dataclass(frozen=True)
class Noun:
    """A noun and its gender; counted says whether sentences may use its plural."""

    english: str
    french: str
    gender: Gender
    counted: bool = False


@dataclass(frozen=True)
class Adjective:
    """An adjective, its French in the masculine singular; before says that French puts it before the noun."""

    english: str
    french: str
    before: bool = False


@dataclass(frozen=True)
class Verb:
    """A verb with what follows it in either language: wait near, attendre près de.

    present holds the French forms after je, il, nous and ils, or only the one after il.
    """

    english: str
    past: str
    present: tuple[str, ...]
    participle: str
    english_after: tuple[str, ...] = ()
    french_after: tuple[str, ...] = ()

    @property
    def with_etre(self) -> bool:
        """Whether the past is built with être, not avoir."""
        return self.participle in _WITH_ETRE

    def french_present(self, person: Person) -> str:
        """The present tense after je (i), il (he), nous (we) or ils (they)."""
        return self.present[0] if len(self.present) == 1 else self.present[PERSONS.index(person)]


def nouns(table: str) -> dict[str, Noun]:
    """Nouns by their English, from lines of: english | french | gender | s (where the plural is used)."""
    return {
        english: Noun(english, french, cast(Gender, gender), counted=plural == ["s"])
        for english, french, gender, *plural in rows(table)
    }


def adjectives(table: str) -> dict[str, Adjective]:
    """Adjectives by their English, from lines of: english | french | before (where it precedes the noun)."""
    return {
        english: Adjective(english, french, before == ["before"]) for english, french, *before in rows(table)
    }


def verbs(table: str) -> dict[str, Verb]:
    """Verbs by their English, from lines of: english | past | present | participle | what French adds."""
    table_of_verbs = {}
    for english, past, present, participle, *after in rows(table):
        base, *english_after = english.split()
        french_after = tuple(after[0].split()) if after else ()
        table_of_verbs[english] = Verb(
            base, past, tuple(present.split()), participle, tuple(english_after), french_after
        )
    return table_of_verbs
