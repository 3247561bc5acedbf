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


def modified(noun: NounPhrase, modifier: Phrase) -> NounPhrase:
    """Return a noun phrase with a phrase that describes it: the dog of the girl."""
    return NounPhrase(
        noun.english + modifier.english, noun.french + modifier.french, noun.gender, noun.person
    )


def conjugate(subject: NounPhrase, verb: Verb, tense: Tense, *, negative: bool = False) -> Phrase:
    """Return a verb that agrees with its subject; the French past is the passé composé.

    Args:
        subject: The subject, with which the verb agrees.
        verb: The verb.
        tense: "present" or "past".
        negative: Use the negation.
    """
    auxiliary, rest = _english_verb(subject, verb, tense, negative=negative)
    return Phrase(auxiliary + rest, _french_verb(subject, verb, tense, negative))


def clause(
    subject: NounPhrase, verb: Verb, tense: Tense, *, negative: bool = False, question: bool = False
) -> Phrase:
    """Return a subject and its verb: "she crossed", or as a question "did she cross", "est-ce qu'elle ...".

    Args:
        subject: The subject, with which the verb agrees.
        verb: The verb.
        tense: "present" or "past".
        negative: Use the negation.
        question: Ask.
    """
    if not question:
        return subject + conjugate(subject, verb, tense, negative=negative)
    auxiliary, rest = _english_verb(subject, verb, tense, negative=negative, question=True)
    in_french = ("est-ce", "que", *subject.french, *_french_verb(subject, verb, tense, negative))
    return Phrase(auxiliary + subject.english + rest, in_french)


def _english_verb(
    subject: NounPhrase, verb: Verb, tense: Tense, *, negative: bool, question: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the auxiliary, which precedes the subject in a question, and the rest of the verb."""
    singular = subject.person == "he"
    if verb.english == "be":
        auxiliary, rest = _BE[tense][subject.person][0], verb.english_after
    elif verb.english == "can":
        auxiliary, rest = "can" if tense == "present" else "could", verb.english_after
    elif negative or question:
        auxiliary = "did" if tense == "past" else "does" if singular else "do"
        rest = (verb.english, *verb.english_after)
    else:
        third = english.third_person(verb.english) if singular else verb.english
        return (), (verb.past if tense == "past" else third, *verb.english_after)
    if negative:
        # English has no contraction of am not
        return (("am", "not") if auxiliary == "am" else (english.contracted_not(auxiliary),)), rest
    return (auxiliary,), rest


def _french_verb(subject: NounPhrase, verb: Verb, tense: Tense, negative: bool) -> tuple[str, ...]:
    """Return the verb in the présent or the passé composé, with ne ... pas around its first word."""
    participle: tuple[str, ...]
    if tense == "present":
        finite, participle = verb.french_present(subject.person), ()
    elif verb.with_etre:
        finite = _BE["present"][subject.person][1]
        participle = (french.agree(verb.participle, subject.gender, subject.number),)
    else:
        finite, participle = _HAVE_FRENCH[subject.person], (verb.participle,)
    negated = ("ne", finite, "pas") if negative else (finite,)
    return (*negated, *participle, *verb.french_after)


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
    not_in_english = ("am", "not") if in_english == "am" else (english.contracted_not(in_english),)
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


def it_for(noun: Noun, *, plural: bool = False) -> NounPhrase:
    """Return the pronoun `it` for a noun, or `they` for its plural: il, elle, ils or elles in French."""
    in_french = "il" if noun.gender == "m" else "elle"
    if plural:
        return NounPhrase(("they",), (in_french + "s",), noun.gender, "they")
    return NounPhrase(("it",), (in_french,), noun.gender, "he")


TOO = words("too", "trop")
VERY = words("very", "très")
SO = words("so", "si")
BECAUSE = words("because", "parce que")
SINCE = words("since", "puisque")
AS = words("as", "comme")
BUT = words("but", "mais")
