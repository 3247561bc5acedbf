"""Parts of sentences in both languages: noun phrases, verbs in a tense, clauses.

A phrase contains its words without elision and contraction. join() applies both to the whole sentence.
"""

from dataclasses import dataclass, replace
from functools import cache
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


NOTHING = Phrase((), ())


@dataclass(frozen=True)
class Form:
    """The form of a verb: its tense, the verb before it, if any, and a negation or a question."""

    tense: Tense = "past"
    modal: Verb | None = None
    negative: bool = False
    question: bool = False


PAST, PRESENT = Form("past"), Form("present")


@dataclass(frozen=True)
class NounPhrase(Phrase):
    """A phrase that verbs and adjectives agree with."""

    gender: Gender
    person: Person

    @property
    def number(self) -> Number:
        """Singular for i and he, plural for we and they."""
        return "plural" if self.person in ("we", "they") else "singular"

    def modified(self, modifier: Phrase) -> "NounPhrase":
        """Return this phrase with a phrase that describes it: the dog of the girl."""
        return replace(self, english=self.english + modifier.english, french=self.french + modifier.french)

    def conjugate(self, verb: Verb, form: Form) -> Phrase:
        """Return a verb whose subject this is; the French past is the passé composé."""
        auxiliary, rest = self._english_verb(verb, form)
        return Phrase(auxiliary + rest, self._french_verb(verb, form))

    def clause(self, verb: Verb, form: Form) -> Phrase:
        """Return this subject and its verb: "she crossed", or "did she cross", "est-ce qu'elle ..."."""
        if not form.question:
            return self + self.conjugate(verb, form)
        auxiliary, rest = self._english_verb(verb, form)
        in_french = ("est-ce", "que", *self.french, *self._french_verb(verb, form))
        return Phrase(auxiliary + self.english + rest, in_french)

    def _english_verb(self, verb: Verb, form: Form) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the auxiliary, which precedes the subject in a question, and the rest of the verb."""
        verb = form.modal.before(verb) if form.modal else verb
        singular, past, rest = self.person == "he", form.tense == "past", verb.english_after
        if verb.english == "be":
            auxiliary = _BE[form.tense][self.person][0]
        elif verb.english == "can":
            auxiliary = "could" if past else "can"
        elif form.negative or form.question:
            auxiliary = "did" if past else "does" if singular else "do"
            rest = (verb.english, *rest)
        else:
            third = english.third_person(verb.english) if singular else verb.english
            return (), (verb.past if past else third, *rest)
        return english.negated(auxiliary, form.negative), rest

    def _french_verb(self, verb: Verb, form: Form) -> tuple[str, ...]:
        """Return the verb in the présent or the passé composé, with ne ... pas around its first word."""
        verb = form.modal.before(verb) if form.modal else verb
        participle: tuple[str, ...] = ()
        if form.tense == "present":
            finite = verb.french_present(self.person)
        elif verb.with_etre:
            finite = _BE["present"][self.person][1]
            participle = (french.agree(verb.participle, self.gender, self.number),)
        else:
            finite, participle = _HAVE_FRENCH[self.person], (verb.participle,)
        return (*french.negated(finite, form.negative), *participle, *verb.french_after)

    def be(self, form: Form) -> Phrase:
        """Return the verb to be whose subject this is; the French past is the imparfait."""
        in_english, in_french = _BE[form.tense][self.person]
        return Phrase(english.negated(in_english, form.negative), french.negated(in_french, form.negative))

    def predicate(self, adjective: Adjective, degree: Phrase = NOTHING) -> Phrase:
        """Return an adjective that describes this subject, after a degree such as too: trop fatiguée."""
        agreed = french.agree(adjective.french, self.gender, self.number)
        return degree + Phrase((adjective.english,), (agreed,))


# English does not show the gender of i, we and they. By convention it is masculine, so they is ils.
I = NounPhrase(("i",), ("je",), "m", "i")  # noqa: E741 - the word itself
HE = NounPhrase(("he",), ("il",), "m", "he")
SHE = NounPhrase(("she",), ("elle",), "f", "he")
WE = NounPhrase(("we",), ("nous",), "m", "we")
THEY = NounPhrase(("they",), ("ils",), "m", "they")
PRONOUNS = (I, HE, SHE, WE, THEY)
OWNERS = {"i": "my", "we": "our", "they": "their", "he": "his", "she": "her"}


def words(english_text: str, french_text: str) -> Phrase:
    """Return a phrase from text: words("near", "près de")."""
    return Phrase(tuple(english_text.split()), tuple(french_text.split()))


@cache
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
    if determiner == "some" and not counted:
        return ("de", french.article("the", gender, "singular"))  # before contraction: de + le pain
    if determiner in ("any", "a-none") or (determiner == "some" and adjective_first):
        return ("de",)  # de grands chats, but des chats noirs
    if determiner in _NUMERALS:
        return (_NUMERALS[determiner],)
    # English has no article for things in general ("i like cats"), where French has les
    return (french.article(determiner or "the", gender, number, before=following),)


def is_adjective(subject: NounPhrase, tense: Tense, adjective: Adjective, degree: Phrase = NOTHING) -> Phrase:
    """Return a whole clause: it was too tired, elle était trop fatiguée.

    Args:
        subject: The subject.
        tense: "present" or "past".
        adjective: The adjective.
        degree: A word such as too, or nothing.
    """
    return subject + subject.be(Form(tense)) + subject.predicate(adjective, degree)


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
