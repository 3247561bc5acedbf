"""The French and English spelling rules of the built-in corpus, case by case."""

import pytest

from npformer.data.corpus import english, french, lexicon
from npformer.data.corpus.phrases import HE, SHE, THEY, WE, Form, I, it_for, noun_phrase, words


@pytest.mark.parametrize(
    ("rule", "in_full", "written"),
    [
        ("elision", "la eau, le animal, le homme, je aime", "l'eau, l'animal, l'homme, j'aime"),
        ("no elision", "le hibou, le hérisson, la haute tour", "le hibou, le hérisson, la haute tour"),
        ("elision of que", "parce que il ne a pas, parce que elle", "parce qu'il n'a pas, parce qu'elle"),
        ("elision of others", "que un ami, il ne y a pas de arbre", "qu'un ami, il n'y a pas d'arbre"),
        ("si", "si il pleut, si elle est si âgée", "s'il pleut, si elle est si âgée"),
        ("à", "à le marché, à les hôtels, à le hibou", "au marché, aux hôtels, au hibou"),
        ("de", "de le pain, de les maisons, de les oies", "du pain, des maisons, des oies"),
        ("elision first", "à le hôtel, de le animal, de la eau", "à l'hôtel, de l'animal, de l'eau"),
        ("jusque", "jusque à le lac, jusque à la rive", "jusqu'au lac, jusqu'à la rive"),
        ("unchanged", "à la gare, merci", "à la gare, merci"),
    ],
)
def test_join_french(rule, in_full, written):
    assert [french.join_french(text.split()) for text in in_full.split(", ")] == written.split(", "), rule


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        # masculine and feminine, singular and plural
        ("grand", "grand grande grands grandes"),
        ("jeune", "jeune jeune jeunes jeunes"),
        ("beau", "beau belle beaux belles"),
        ("nouveau", "nouveau nouvelle nouveaux nouvelles"),
        ("vieux", "vieux vieille vieux vieilles"),
        ("heureux", "heureux heureuse heureux heureuses"),
        ("blanc", "blanc blanche blancs blanches"),
        ("long", "long longue longs longues"),
        ("fatigué", "fatigué fatiguée fatigués fatiguées"),
        ("fermier", "fermier fermière fermiers fermières"),
        ("allé", "allé allée allés allées"),
    ],
)
def test_agreement(word, forms):
    agreed = [french.agree(word, g, n) for n in ("singular", "plural") for g in ("m", "f")]
    assert agreed == forms.split()


@pytest.mark.parametrize(
    ("word", "following", "form"),
    [
        ("beau", "animal", "bel"),
        ("beau", "chat", "beau"),
        ("vieux", "homme", "vieil"),
        ("vieux", "hibou", "vieux"),
        ("nouveau", "hôtel", "nouvel"),
        ("petit", "âne", "petit"),
    ],
)
def test_masculine_before_a_vowel_sound(word, following, form):
    assert french.agree(word, "m", before=following) == form
    assert french.agree(word, "f", before=following) == french.agree(word, "f")


@pytest.mark.parametrize(
    ("rule", "forms"),
    [
        (french.plural, {"chat": "chats", "cheval": "chevaux", "chapeau": "chapeaux", "hibou": "hiboux"}),
        (french.plural, {"souris": "souris"}),
        (english.plural, {"cat": "cats", "man": "men", "woman": "women", "beach": "beaches", "key": "keys"}),
        (english.third_person, {"cross": "crosses", "go": "goes", "find": "finds", "carry": "carries"}),
        (english.third_person, {"have": "has"}),
    ],
)
def test_plurals_and_third_persons(rule, forms):
    assert {word: rule(word) for word in forms} == forms


def test_english_article():
    parts = ["a", "owl", "saw", "a", "cat", "and", "a", "old", "man"]
    assert english.join_english(parts) == "an owl saw a cat and an old man"


NOUNS = (
    lexicon.ANIMALS | lexicon.MACHINES | lexicon.BUILDINGS | lexicon.THINGS | lexicon.FOOD | lexicon.DRINKS
)
OLD, NEW, BEAUTIFUL, BLACK, WHITE = (
    lexicon.QUALITIES[name] for name in ("old", "new", "beautiful", "black", "white")
)


@pytest.mark.parametrize(
    ("determiner", "noun", "adjectives", "plural", "english_text", "french_text"),
    [
        ("the", "school", (), False, "the school", "l'école"),
        ("my", "school", (), False, "my school", "mon école"),
        ("my", "school", (OLD,), False, "my old school", "ma vieille école"),
        ("her", "horse", (), False, "her horse", "son cheval"),
        ("his", "car", (WHITE,), False, "his white car", "sa voiture blanche"),
        ("our", "horse", (), True, "our horses", "nos chevaux"),
        ("their", "hat", (), False, "their hat", "leur chapeau"),
        ("this", "animal", (), False, "this animal", "cet animal"),
        ("this", "animal", (NEW,), False, "this new animal", "ce nouvel animal"),
        ("this", "owl", (), False, "this owl", "ce hibou"),
        ("this", "cow", (BLACK,), False, "this black cow", "cette vache noire"),
        ("these", "owl", (), True, "these owls", "ces hiboux"),
        ("a", "animal", (BEAUTIFUL, BLACK), False, "a beautiful black animal", "un bel animal noir"),
        ("a-none", "tree", (), False, "a tree", "d'arbre"),
        ("any", "tree", (OLD,), True, "any old trees", "de vieux arbres"),
        ("some", "cat", (BLACK,), True, "some black cats", "des chats noirs"),
        ("some", "cat", (BEAUTIFUL,), True, "some beautiful cats", "de beaux chats"),
        ("two", "key", (NEW,), True, "two new keys", "deux nouvelles clés"),
        ("", "car", (NEW,), True, "new cars", "les nouvelles voitures"),
    ],
)
def test_noun_phrase(determiner, noun, adjectives, plural, english_text, french_text):
    phrase = noun_phrase(determiner, NOUNS[noun], *adjectives, plural=plural)
    assert phrase.join() == (english_text, french_text)


def test_uncountable_nouns_take_the_partitive_article():
    phrases = [
        noun_phrase("some", NOUNS[name], counted=False).join()[1] for name in ("bread", "soup", "water")
    ]
    assert phrases == ["du pain", "de la soupe", "de l'eau"]


NOT, ASKED, NOT_ASKED = {"negative": True}, {"question": True}, {"negative": True, "question": True}


@pytest.mark.parametrize(
    ("subject", "modal", "verb", "tense", "form", "english_text", "french_text"),
    [
        (I, None, "like", "present", {}, "i like", "j'aime"),
        (I, None, "like", "present", NOT, "i don't like", "je n'aime pas"),
        (HE, None, "eat", "past", NOT, "he didn't eat", "il n'a pas mangé"),
        (I, None, "see", "past", {}, "i saw", "j'ai vu"),
        (SHE, None, "go to", "past", {}, "she went to", "elle est allée à"),
        (SHE, None, "enter", "past", NOT, "she didn't enter", "elle n'est pas entrée dans"),
        (WE, None, "arrive at", "past", {}, "we arrived at", "nous sommes arrivés à"),
        (THEY, None, "look for", "present", NOT, "they don't look for", "ils ne cherchent pas"),
        (HE, None, "walk to", "past", {}, "he walked to", "il a marché jusqu'à"),
        (SHE, None, "wait near", "past", {}, "she waited near", "elle a attendu près de"),
        (WE, None, "cross", "present", {}, "we cross", "nous traversons"),
        (THEY, None, "reach", "present", NOT, "they don't reach", "ils n'atteignent pas"),
        (I, None, "follow", "present", {}, "i follow", "je suis"),
        (SHE, "want to", "avoid", "past", {}, "she wanted to avoid", "elle a voulu éviter"),
        (HE, "want to", "cross", "past", NOT, "he didn't want to cross", "il n'a pas voulu traverser"),
        (HE, "can", "enter", "past", NOT, "he couldn't enter", "il n'a pas pu entrer dans"),
        (I, "can", "find", "present", NOT, "i can't find", "je ne peux pas trouver"),
        (THEY, "have to", "leave", "past", {}, "they had to leave", "ils ont dû quitter"),
        (WE, "try to", "avoid", "past", {}, "we tried to avoid", "nous avons essayé d'éviter"),
        (HE, "be going to", "walk to", "present", {}, "he is going to walk to", "il va marcher jusqu'à"),
        (I, "be going to", "go to", "present", NOT, "i am not going to go to", "je ne vais pas aller à"),
        (SHE, None, "arrive at", "past", ASKED, "did she arrive at", "est-ce qu'elle est arrivée à"),
        (THEY, None, "see", "present", NOT_ASKED, "don't they see", "est-ce qu'ils ne voient pas"),
        (WE, "have to", "reach", "past", ASKED, "did we have to reach", "est-ce que nous avons dû atteindre"),
        (I, "can", "reach", "past", NOT_ASKED, "couldn't i reach", "est-ce que je n'ai pas pu atteindre"),
    ],
)
def test_verbs_with_and_without_a_modal_verb(subject, modal, verb, tense, form, english_text, french_text):
    whole = lexicon.VERBS[verb] if modal is None else lexicon.MODALS[modal].before(lexicon.VERBS[verb])
    assert subject.clause(whole, Form(tense, **form)).join() == (english_text, french_text)


def test_pronouns_for_nouns():
    horse, cow = lexicon.ANIMALS["horse"], lexicon.ANIMALS["cow"]
    assert [it_for(noun, plural=False).join() for noun in (horse, cow)] == [("it", "il"), ("it", "elle")]
    assert [it_for(noun, plural=True).join() for noun in (horse, cow)] == [("they", "ils"), ("they", "elles")]


def test_a_verb_agrees_with_the_subject_before_its_modifier():
    women = noun_phrase("the", lexicon.PEOPLE["woman"], plural=True)
    of_man = words("of", "de") + noun_phrase("the", lexicon.PEOPLE["man"])
    did = women.modified(of_man).clause(lexicon.VERBS["arrive at"], Form("past", question=True))
    french_text = "est-ce que les femmes de l'homme sont arrivées à"
    assert did.join() == ("did the women of the man arrive at", french_text)


def test_the_participle_after_etre_agrees_with_a_noun():
    women = noun_phrase("the", lexicon.PEOPLE["woman"], plural=True)
    clause = women + women.conjugate(lexicon.VERBS["stay near"], Form("past", negative=True))
    assert clause.join() == ("the women didn't stay near", "les femmes ne sont pas restées près de")


@pytest.mark.parametrize(
    ("subject", "tense", "negative", "english_text", "french_text"),
    [
        (I, "present", True, "i am not happy", "je ne suis pas heureux"),
        (I, "past", False, "i was happy", "j'étais heureux"),
        (I, "past", True, "i wasn't happy", "je n'étais pas heureux"),
        (SHE, "present", True, "she isn't happy", "elle n'est pas heureuse"),
        (WE, "past", False, "we were happy", "nous étions heureux"),
        (THEY, "present", True, "they aren't happy", "ils ne sont pas heureux"),
    ],
)
def test_to_be(subject, tense, negative, english_text, french_text):
    phrase = subject.be(Form(tense, negative=negative)) + subject.predicate(lexicon.MOODS["happy"])
    assert (subject + phrase).join() == (english_text, french_text)


def test_phrases_are_concatenated_before_words_are_elided():
    phrase = words("the door of", "la porte de") + noun_phrase("the", NOUNS["hotel"], plural=True)
    assert phrase.join() == ("the door of the hotels", "la porte des hôtels")
