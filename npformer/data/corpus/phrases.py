"""Parts of sentences in both languages: noun phrases, verbs in a tense, clauses.

A phrase contains its words without elision and contraction. join() applies both to the whole sentence.
"""

from dataclasses import dataclass
from typing import Literal

from npformer.data.corpus import english, french
from npformer.data.corpus.entries import Adjective, Noun, Person, Verb
from npformer.data.corpus.french import Gender, Number

Tense = Literal["present", "past"]

_NUMERALS = {"two": "deux", "three": "trois", "five": "cinq", "ten": "dix"}

# The English and French forms of to be after i, he, we and they; the French past is the imparfait.
_BE = {
    "present": {"i": ("am", "suis"), "he": ("is", "est"), "we": ("are", "sommes"), "they": ("are", "sont")},
    "past": {
        "i": ("was", "étais"),
        "he": ("was", "était"),
        "we": ("were", "étions"),
        "they": ("were", "étaient"),
    },
}
_HAVE_FRENCH: dict[Person, str] = {"i": "ai", "he": "a", "we": "avons", "they": "ont"}


@dataclass(frozen=True)
class Phrase:
    """The same piece of a sentence in English and in French."""

    english: tuple[str, ...]
    french: tuple[str, ...]

    def __add__(self, other: "Phrase") -> "Phrase":
        return Phrase(self.english + other.english, self.french + other.french)

    def join(self) -> tuple[str, str]:
        """Return the English and the French as they are written."""
        return english.join_english(self.english), french.join_french(self.french)


@dataclass(frozen=True)
class NounPhrase(Phrase):
    """A phrase that verbs and adjectives agree with."""

    gender: Gender
    person: Person

    @property
    def number(self) -> Number:
        """Singular for i and he, plural for we and they."""
        return "plural" if self.person in ("we", "they") else "singular"


# English does not show the gender of i, we and they. By convention it is masculine, so they is ils.
I = NounPhrase(("i",), ("je",), "m", "i")  # noqa: E741 - the word itself
HE = NounPhrase(("he",), ("il",), "m", "he")
SHE = NounPhrase(("she",), ("elle",), "f", "he")
WE = NounPhrase(("we",), ("nous",), "m", "we")
THEY = NounPhrase(("they",), ("ils",), "m", "they")
PRONOUNS = (I, HE, SHE, WE, THEY)
OWNERS = {"i": "my", "we": "our", "they": "their", "he": "his", "she": "her"}

NOTHING = Phrase((), ())


def words(english_text: str, french_text: str) -> Phrase:
    """Return a phrase from text: words("near", "près de")."""
    return Phrase(tuple(english_text.split()), tuple(french_text.split()))


def noun_phrase(
    determiner: str, noun: Noun, *adjectives: Adjective, plural: bool = False, counted: bool = True
) -> NounPhrase:
    """Return a determiner, a noun and its adjectives, in the word order of each language.

    The determiner "a-none" stands for the a after a negation: "doesn't have a dog" is "pas de chien" in
    French. The French for some depends on whether the noun has a plural: du pain (some bread), des chats
    (some cats).

    Args:
        determiner: The English determiner: the, a, some, any, this, these, my, our, two ... or "" for none.
        noun: The noun.
        adjectives: The adjectives.
        plural: Use the plural.
        counted: False for a noun without a plural.
    """
    number: Number = "plural" if plural else "singular"
    english_noun = english.plural(noun.english) if plural else noun.english
    in_english = (determiner.removesuffix("-none"), *(a.english for a in adjectives), *english_noun.split())

    before = [a.french for a in adjectives if a.before]
    after = [a.french for a in adjectives if not a.before]
    french_noun = french.plural(noun.french) if plural else noun.french
    core = french_noun.split() + [french.agree(word, noun.gender, number) for word in after]
    for word in reversed(before):
        core.insert(0, french.agree(word, noun.gender, number, before=core[0]))
    article = _french_determiner(determiner, noun.gender, number, core[0], bool(before), counted)
    in_french = (*article, *core)
    return NounPhrase(
        tuple(word for word in in_english if word), in_french, noun.gender, "they" if plural else "he"
    )


def _french_determiner(
    determiner: str, gender: Gender, number: Number, following: str, adjective_first: bool, counted: bool
) -> tuple[str, ...]:
    """Return the French for an English determiner, given the word that follows it."""
    if determiner in ("any", "a-none"):
        return ("de",)
    if determiner == "some":
        if not counted:
            return french.partitive(gender)
        return ("de",) if adjective_first else ("des",)  # de grands chats, but des chats noirs
    if determiner == "a":
        return (french.indefinite(gender),)
    if determiner in ("this", "these"):
        return (french.demonstrative(gender, number, before=following),)
    if determiner in OWNERS.values():
        return (french.possessive(determiner, gender, number, before=following),)
    if determiner in _NUMERALS:
        return (_NUMERALS[determiner],)
    # English has no article for things in general ("i like cats"), where French has les
    return (french.definite(gender, number),)


def conjugate(subject: NounPhrase, verb: Verb, tense: Tense, *, negative: bool = False) -> Phrase:
    """Return a verb that agrees with its subject; the French past is the passé composé.

    Args:
        subject: The subject, with which the verb agrees.
        verb: The verb.
        tense: "present" or "past".
        negative: Use the negation.
    """
    participle: tuple[str, ...]
    if tense == "present":
        auxiliary, participle = verb.french_present(subject.person), ()
    elif verb.with_etre:
        auxiliary = _BE["present"][subject.person][1]
        participle = (french.agree(verb.participle, subject.gender, subject.number),)
    else:
        auxiliary, participle = _HAVE_FRENCH[subject.person], (verb.participle,)
    in_french = ("ne", auxiliary, "pas", *participle) if negative else (auxiliary, *participle)

    singular = subject.person == "he"
    in_english: tuple[str, ...]
    if negative:
        do = "didn't" if tense == "past" else "doesn't" if singular else "don't"
        in_english = (do, verb.english)
    elif tense == "past":
        in_english = (verb.past,)
    else:
        in_english = (english.third_person(verb.english) if singular else verb.english,)
    return Phrase(in_english + verb.english_after, in_french + verb.french_after)


def be(subject: NounPhrase, tense: Tense, *, negative: bool = False) -> Phrase:
    """Return the verb to be that agrees with its subject; the French past is the imparfait.

    Args:
        subject: The subject, with which the verb agrees.
        tense: "present" or "past".
        negative: Use the negation.
    """
    in_english, in_french = _BE[tense][subject.person]
    if not negative:
        return Phrase((in_english,), (in_french,))
    # English has no contraction of am not
    not_in_english = ("am", "not") if in_english == "am" else (in_english + "n't",)
    return Phrase(not_in_english, ("ne", in_french, "pas"))


def predicate(subject: NounPhrase, adjective: Adjective, degree: Phrase = NOTHING) -> Phrase:
    """Return an adjective that describes the subject, after a degree such as too: trop fatiguée.

    Args:
        subject: The subject, with which the adjective agrees.
        adjective: The adjective.
        degree: A word such as too, or nothing.
    """
    agreed = french.agree(adjective.french, subject.gender, subject.number)
    return degree + Phrase((adjective.english,), (agreed,))


def is_adjective(subject: NounPhrase, tense: Tense, adjective: Adjective, degree: Phrase = NOTHING) -> Phrase:
    """Return a whole clause: it was too tired, elle était trop fatiguée.

    Args:
        subject: The subject.
        tense: "present" or "past".
        adjective: The adjective.
        degree: A word such as too, or nothing.
    """
    return subject + be(subject, tense) + predicate(subject, adjective, degree)


def it_for(noun: Noun) -> NounPhrase:
    """Return the pronoun `it` for a noun: il or elle in French."""
    return NounPhrase(("it",), ("il" if noun.gender == "m" else "elle",), noun.gender, "he")


TOO = words("too", "trop")
VERY = words("very", "très")
SO = words("so", "si")
BECAUSE = words("because", "parce que")
