"""Simple sentences, without the two ambiguous words, which cover the rest of the grammar."""

from dataclasses import replace
from random import Random

from npformer.data.corpus import french, lexicon
from npformer.data.corpus.constructions import FORMS, wrapper
from npformer.data.corpus.draws import chance, pick, weighted
from npformer.data.corpus.entries import Adjective, Noun, Verb
from npformer.data.corpus.lexicon import MOODS, QUALITIES, TEMPERATURES, TRADES, VERBS
from npformer.data.corpus.pairs import Pair
from npformer.data.corpus.phrases import (
    BECAUSE,
    HE,
    NOTHING,
    PRONOUNS,
    SHE,
    SO,
    THEY,
    TOO,
    VERY,
    WE,
    Form,
    I,
    NounPhrase,
    Phrase,
    Tense,
    is_adjective,
    it_for,
    noun_phrase,
    words,
)
from npformer.data.corpus.simple_parts import (
    DESTINATIONS,
    FITTING,
    MACHINE_VERBS,
    MASS,
    OBJECTS,
    OWNED,
    PLACED,
    PLACES,
    SEEN,
    adjectives,
    definite,
    either_form,
    either_tense,
    indefinite,
    owners,
    person,
    somewhere,
)

# Sentences about actions

_THINKING = Adjective("thinking", "pensant")
_THINKERS = (lexicon.MACHINES["machine"], lexicon.MACHINES["machine"], lexicon.MACHINES["robot"])
# The animals that eat or drink something.
_EATERS = {
    "meat": ("dog", "cat", "animal", "owl"),
    "cheese": ("mouse", "dog", "animal", "goat", "ant"),
    "bread": ("hen", "goose", "mouse", "ant", "donkey", "dog"),
    "milk": ("cat", "dog", "hedgehog", "animal", "goat"),
    "water": tuple(lexicon.ANIMALS),
}


def action(rng: Random) -> Phrase:
    """Draw a sentence such as "The girl didn't find my key" or "she drinks some water"."""
    verb = pick(rng, ("see", "find", "look for", "buy", "eat", "eat", "drink", "drink"))
    who = person(rng)
    noun = pick(rng, OBJECTS[verb])
    if noun.english in _EATERS and chance(rng, 0.5):
        who = definite(rng, lexicon.ANIMALS[pick(rng, _EATERS[noun.english])])
    elif noun in MASS and chance(rng, 0.3):
        who = pick(rng, (I, WE))  # so that "bois" and "buvons", which have no other subjects, are not rare
    negative = chance(rng, 0.25)
    if chance(rng, 0.55):
        what: Phrase = definite(rng, noun, owners(who))
    else:
        what = indefinite(rng, noun, negative=negative)
    if noun in MASS and chance(rng, 0.4):
        what += somewhere(rng)
    return in_some_form(rng, who, VERBS[verb], negative=negative) + what


def moving(rng: Random) -> Phrase:
    """Draw a sentence such as "We want to cross the bridge" or "does the dog follow the path"."""
    kind = pick(rng, ("person", "person", "we", "we", "animal", "machine"))
    verb = pick(rng, MACHINE_VERBS if kind == "machine" else (*PLACES, "take"))
    if kind == "person":
        who = person(rng)
    elif kind == "we":
        # the French verb forms after i, we and they have few other subjects
        who = pick(rng, (I, I, WE, WE, WE, THEY))
    else:
        who = definite(rng, pick(rng, _ANIMALS if kind == "animal" else _MACHINES), probability=0.2)
    place = pick(rng, PLACES[verb])
    where = noun_phrase(
        "the", place, *adjectives(rng, place, 0.15), plural=place.counted and chance(rng, 0.3)
    )
    return in_some_form(rng, who, VERBS[verb], negative=chance(rng, 0.2)) + where


def in_some_form(rng: Random, who: NounPhrase, verb: Verb, *, negative: bool) -> Phrase:
    """Draw a form of a verb with its subject: in the present or the past, after "want to", or as a question.

    Args:
        rng: The generator of the choices.
        who: The subject.
        verb: The verb.
        negative: Use the negation.
    """
    if chance(rng, 0.3):
        names = ("couldn't", "want", "going to") if negative else ("want", "going to", "had to", "try")
        form = FORMS[pick(rng, names)]
        form = replace(form, negative=negative, question=chance(rng, 0.15) and not negative)
        before = _day(rng, form.tense, 0.1) if not form.question else NOTHING
        return before + who.clause(verb, form)
    tense = either_tense(rng)
    if chance(rng, 0.1):
        return who.clause(verb, Form(tense, negative=negative, question=True))
    return _day(rng, tense, 0.1) + who.clause(verb, Form(tense, negative=negative))


def _day(rng: Random, tense: Tense, probability: float) -> Phrase:
    """Draw a day such as yesterday, or nothing."""
    return wrapper(rng, "day", tense) if chance(rng, probability) else NOTHING


def liking(rng: Random) -> Phrase:
    """Draw a sentence such as "I like small cats".

    The plural has no article, because "cats" and "the cats" are both "les chats" in French.
    """
    who = person(rng)
    noun = pick(rng, SEEN + MASS * 2)
    if noun in MASS:
        what = noun_phrase("", noun)
    elif noun in OWNED and chance(rng, 0.4):
        many = noun.counted and chance(rng, 0.6)
        what = noun_phrase(pick(rng, owners(who)), noun, *adjectives(rng, noun), plural=many)
    elif noun.counted and chance(rng, 0.6):
        what = noun_phrase("", noun, *adjectives(rng, noun), plural=True)
    else:
        what = noun_phrase(pick(rng, ("the", "this")), noun, *adjectives(rng, noun))
    return who.clause(VERBS["like"], Form("present", negative=chance(rng, 0.3))) + what


def having(rng: Random) -> Phrase:
    """Draw a sentence such as "She has two black cats" or "we don't have any boats"."""
    who = person(rng)
    negative = chance(rng, 0.3)
    what = indefinite(rng, pick(rng, OWNED), negative=negative)
    return who.clause(VERBS["have"], Form("present", negative=negative)) + what


def going(rng: Random) -> Phrase:
    """Draw a sentence such as "She went to the market" or "the boys didn't arrive at the station"."""
    # the French verb forms after i and we have no other subjects, so these two are drawn more often
    who = pick(rng, (I, WE)) if chance(rng, 0.15) else person(rng)
    verb = VERBS[pick(rng, ("go to", "arrive at", "stay near"))]
    where = pick(rng, DESTINATIONS)
    place = noun_phrase("the", where, *adjectives(rng, where, 0.15))
    return in_some_form(rng, who, verb, negative=chance(rng, 0.25)) + place


def thanks(rng: Random) -> Phrase:
    """Draw a sentence such as "Thanks for the bread"."""
    noun = pick(rng, OWNED + MASS)
    return words("thanks for", "merci pour") + definite(rng, noun)


def thinking(rng: Random) -> Phrase:
    """Draw a sentence such as "We like thinking machines" or "this thinking robot is old"."""
    noun = pick(rng, _THINKERS)
    many = noun.counted and chance(rng, 0.5)
    if chance(rng, 0.5):
        who = person(rng)
        verb = who.conjugate(VERBS["like"], Form("present", negative=chance(rng, 0.3)))
        determiner = "" if many else pick(rng, ("the", "this"))
        return who + verb + noun_phrase(determiner, noun, _THINKING, plural=many)
    determiner = pick(rng, ("the", "these" if many else "this", pick(rng, ("my", "our", "their"))))
    what = noun_phrase(determiner, noun, _THINKING, plural=many)
    quality = pick(rng, tuple(QUALITIES[name] for name in ("big", "small", "old", "beautiful")))
    return what + what.be(Form(either_tense(rng))) + what.predicate(quality, pick(rng, (NOTHING, VERY, TOO)))


# Sentences about states

_NEW = QUALITIES["new"]
_TOWNS = ("village", "town", "school", "market")
_WHOLES = tuple(lexicon.BUILDINGS[name] for name in ("house", "school", "hotel", "station", "hospital"))
_PARTS = tuple(
    (lexicon.THINGS | lexicon.GROUNDS)[name] for name in ("door", "window", "key", "garden", "wall")
)
_WEATHER = (words("it was raining", "il pleuvait"), words("it was snowing", "il neigeait"))
_PRONOUN_FOR = {
    ("singular", "m"): HE,
    ("singular", "f"): SHE,
    ("plural", "m"): THEY,
    ("plural", "f"): NounPhrase(("they",), ("elles",), "f", "they"),
}
_ANIMALS = tuple(lexicon.ANIMALS.values())
_BUILDINGS = tuple(noun for noun in lexicon.BUILDINGS.values() if noun.english not in ("village", "town"))
_MACHINES = tuple(lexicon.MACHINES.values())


def mood(rng: Random) -> Phrase:
    """Draw a sentence such as "My sister is very happy" or "these dogs weren't ill"."""
    if chance(rng, 0.65):
        who, mood = person(rng), pick(rng, tuple(MOODS.values()))
    else:
        who = definite(rng, pick(rng, _ANIMALS), probability=0.2)
        mood = MOODS[pick(rng, ("tired", "ill", "happy", "sad"))]
    degree = pick(rng, (NOTHING, VERY, TOO, SO))
    return who + who.be(either_form(rng, 0.25)) + who.predicate(mood, degree)


def quality(rng: Random) -> Phrase:
    """Draw a sentence such as "This house is too big" or "the soup was cold"."""
    if chance(rng, 0.25):
        food = pick(rng, MASS)
        what = noun_phrase(pick(rng, ("the", "this")), food)
        quality = pick(rng, tuple(TEMPERATURES.values()))
    else:
        noun = pick(rng, SEEN)
        what = definite(rng, noun, ("my", "our", "their"), probability=0)
        quality = _quality_of(rng, noun)
    # a colour has no degree: "too red" is unusual
    colour = quality in QUALITIES.values() and not quality.before
    degree = NOTHING if colour else pick(rng, (NOTHING, VERY, TOO, SO))
    return what + what.be(either_form(rng, 0.25)) + what.predicate(quality, degree)


def _quality_of(rng: Random, noun: Noun) -> Adjective:
    """Draw an adjective of a noun that can follow the verb to be, unlike nouveau."""
    return pick(rng, [adjective for adjective in FITTING[noun.english] if adjective != _NEW])


def being_somewhere(rng: Random) -> Phrase:
    """Draw a sentence such as "The keys are under the table"."""
    if chance(rng, 0.4):
        who, where = person(rng), somewhere(rng)
    else:
        noun = pick(rng, PLACED)
        who, where = definite(rng, noun, ("my", "our", "their"), probability=0.2), somewhere(rng, noun)
    return who + who.be(either_form(rng, 0.25)) + where


def existence(rng: Random) -> Phrase:
    """Draw a sentence such as "There are two owls in the tree" or "there isn't any milk on the table"."""
    noun = pick(rng, PLACED + PLACED + MASS)
    negative, past = chance(rng, 0.3), chance(rng, 0.4)
    what = indefinite(rng, noun, negative=negative)
    in_english = {"singular": ("is", "was"), "plural": ("are", "were")}[what.number][past]
    there = words(f"there {in_english}" + "n't" * negative, "il ne y a pas" if negative else "il y a")
    if past:
        there = Phrase(there.english, tuple("avait" if word == "a" else word for word in there.french))
    where = somewhere(rng, noun)
    if noun in MASS:
        where = words("on", "sur") + noun_phrase("the", lexicon.THINGS["table"])
    return there + what + where


def part(rng: Random) -> Phrase:
    """Draw a sentence such as "The door of the house is red" or "i see the gardens of the hotels"."""
    part, whole = pick(rng, _PARTS), pick(rng, _WHOLES)
    plural = whole.counted and chance(rng, 0.4)
    owner = noun_phrase("the", whole, *adjectives(rng, whole, 0.2), plural=plural)
    many = plural and part.counted
    what = noun_phrase("the", part, plural=many)
    of = words("of", "de") + owner
    if chance(rng, 0.5):
        is_quality = what.be(either_form(rng, 0.2)) + what.predicate(_quality_of(rng, part))
        return what + of + is_quality
    who = person(rng)
    verb = VERBS[pick(rng, ("see", "find", "look for"))]
    return who.clause(verb, either_form(rng, 0.2)) + what + of


def comparison(rng: Random) -> Phrase:
    """Draw a sentence such as "The horse is older than the dog"."""
    kind = pick(rng, (_ANIMALS, _ANIMALS, _BUILDINGS, _MACHINES))
    first, second = pick(rng, kind), pick(rng, kind)
    if first == second:
        return comparison(rng)
    comparatives = [("bigger", "big"), ("smaller", "small"), ("older", "old"), ("younger", "young")]
    if kind is not _ANIMALS:
        comparatives.pop()
    in_english, name = pick(rng, comparatives)
    more = Adjective(in_english, QUALITIES[name].french)
    one, other = definite(rng, first, probability=0), definite(rng, second, probability=0)
    compared = one.predicate(more, words("", "plus")) + words("than", "que") + other
    return one + one.be(either_form(rng, 0.2)) + compared


def reason(rng: Random) -> Phrase:
    """Draw a sentence such as "She didn't go to school because she was ill"."""
    who = person(rng)
    if chance(rng, 0.4):
        return _bought_for_its_looks(rng, who)
    verb = VERBS[pick(rng, ("go to", "arrive at", "stay near"))]
    # the reasons below, such as rain and illness, explain why someone stayed, or did not go or arrive
    negative = verb.english != "stay"
    went = who.clause(verb, Form(negative=negative))
    act = went + noun_phrase("the", pick(rng, DESTINATIONS))
    if chance(rng, 0.35):
        return act + BECAUSE + pick(rng, _WEATHER)
    again = who if who in PRONOUNS else _PRONOUN_FOR[who.number, who.gender]
    mood = MOODS[pick(rng, ("tired", "ill", "sad"))]
    return act + BECAUSE + is_adjective(again, "past", mood, pick(rng, (NOTHING, VERY, TOO, SO)))


def _bought_for_its_looks(rng: Random, who: NounPhrase) -> Phrase:
    """Draw a sentence such as "i bought the hat because it was beautiful", in which `it` is not ambiguous."""
    noun = pick(rng, OWNED)
    quality = _quality_of(rng, noun)
    degree = pick(rng, (VERY, SO)) if quality.before else NOTHING
    tense: Tense = "present" if chance(rng, 0.4) else "past"
    verb, determiner = (VERBS["like"], "this") if tense == "present" else (VERBS["buy"], "the")
    bought = who.clause(verb, Form(tense)) + noun_phrase(determiner, noun)
    return bought + BECAUSE + is_adjective(it_for(noun), tense, quality, degree)


def trade(rng: Random) -> Phrase:
    """Draw a sentence such as "My sister is a teacher" or "we are new farmers in this village".

    French names the trade without an article, "elle est professeure", unless an adjective comes with it.
    """
    who = person(rng) if chance(rng, 0.3) else pick(rng, (I, HE, SHE, SHE, WE, WE, THEY, THEY))
    if who.number == "plural" and who.gender == "f":
        who = WE
    name = pick(rng, tuple(TRADES.values()))
    noun = Noun(name.english, french.agree(name.french, who.gender), who.gender)
    many = who.number == "plural"
    quality = (QUALITIES[pick(rng, ("young", "old", "new", "new"))],) if chance(rng, 0.4) else ()
    one = noun_phrase("some" if many else "a", noun, *quality, plural=many)
    # the article is removed: English has none in the plural, and French none without an adjective
    what = Phrase(one.english[1:] if many else one.english, one.french if quality else one.french[1:])
    place = NOTHING
    if chance(rng, 0.4):
        town = lexicon.BUILDINGS[pick(rng, _TOWNS)]
        place = words("in", "dans") + noun_phrase(pick(rng, ("the", "this")), town)
    return who + who.be(Form(either_tense(rng), negative=chance(rng, 0.25) and not quality)) + what + place


def where(rng: Random) -> Phrase:
    """Draw a sentence such as "Where is the station?"."""
    what = definite(rng, pick(rng, PLACED + _BUILDINGS), ("my", "our", "their"))
    return words("where", "où") + what.be(Form(either_tense(rng))) + what


_FIRST_WORDS = ("est-ce", "hier", "ce", "aujourd'hui")

# The weights with which the kinds of sentences are drawn.
_KINDS = (
    (9, action),
    (15, moving),
    (2.5, liking),
    (2, having),
    (3, mood),
    (3, quality),
    (2.5, being_somewhere),
    (4.5, going),
    (2.5, existence),
    (1.2, part),
    (1.5, comparison),
    (3, reason),
    (4, trade),
    (0.5, thanks),
    (1.2, thinking),
    (0.7, where),
)


# Kinds of sentences that "i think that" cannot precede: thanks and questions.
_ALONE = (thanks, where)


def draw_simple(rng: Random) -> Pair:
    """Draw a sentence of one of these kinds, sometimes inside another one: "the girl said that it ..."."""
    kind = weighted(rng, _KINDS)
    phrase = kind(rng)
    # a question and a day come first in their sentence
    if kind not in _ALONE and phrase.french[0] not in _FIRST_WORDS and chance(rng, 0.12):
        phrase = wrapper(rng, pick(rng, ("think", "said")), "past") + phrase
    return Pair(*phrase.join(), "simple")
