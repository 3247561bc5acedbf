"""French spelling rules: elision, contraction, and the agreement of articles, adjectives and participles."""

from collections.abc import Sequence
from typing import Literal

Gender = Literal["m", "f"]
Number = Literal["singular", "plural"]

_VOWELS = "aàâeéèêëiîïoôuùûœ"

# Before these the h forbids elision, as a consonant would: le hibou, but l'homme.
ASPIRATED = frozenset({"haut", "haute", "hérisson", "hérissons", "hibou", "hiboux"})

# The words that lose their last vowel before a vowel sound: l'animal, qu'il, n'a, jusqu'à.
_ELIDED = frozenset(
    {"ce", "de", "je", "jusque", "la", "le", "lorsque", "me", "ne", "puisque", "que", "se", "te"}
)

_CONTRACTED = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}

# The form that a masculine singular adjective takes before a vowel sound: un bel animal.
_BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}

_IRREGULAR_FEMININE = {
    "beau": "belle",
    "blanc": "blanche",
    "long": "longue",
    "nouveau": "nouvelle",
    "vieux": "vieille",
}

_POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}


def begins_with_vowel_sound(word: str) -> bool:
    """Whether the words before it elide: a vowel, the word y, or an h that is not aspirated."""
    return word[0] in _VOWELS or word == "y" or (word[0] == "h" and word not in ASPIRATED)


def join_french(words: Sequence[str]) -> str:
    """Write words as a sentence, with elision (la + eau = l'eau) and contraction (à + le = au).

    Elision comes first, for it saves the article from contraction: à + le + hôtel = à l'hôtel.
    """
    pieces: list[str] = []
    article_taken = False  # is this word already part of a contraction?
    padded = (*words, "", "")
    for word, following, after in zip(words, padded[1:], padded[2:], strict=False):
        if article_taken:
            article_taken = False
        elif _elides(word, following):
            pieces.append(word[:-1] + "'")
        elif (word, following) in _CONTRACTED and not _elides(following, after):
            pieces.append(_CONTRACTED[word, following] + " ")
            article_taken = True
        else:
            pieces.append(word + " ")
    return "".join(pieces).rstrip(" ")


def _elides(word: str, following: str) -> bool:
    """Whether the word loses its last vowel before the one that follows; "" follows the last word."""
    if word == "si":
        return following in ("il", "ils")
    return word in _ELIDED and following != "" and begins_with_vowel_sound(following)


def plural(word: str) -> str:
    """The plural of a noun, or of a masculine or feminine adjective: chat, chats; cheval, chevaux."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    if word.endswith("eau") or word == "hibou":
        return word + "x"
    return word + "s"


def feminine(word: str) -> str:
    """The feminine of an adjective, participle or trade: petit, petite; heureux, heureuse; blanc, blanche."""
    if word in _IRREGULAR_FEMININE:
        return _IRREGULAR_FEMININE[word]
    if word.endswith("e"):
        return word
    if word.endswith("eux"):
        return word[:-1] + "se"
    if word.endswith("er"):
        return word[:-2] + "ère"
    return word + "e"


def agree(word: str, gender: Gender, number: Number = "singular", *, before: str = "") -> str:
    """The form of an adjective or participle for a gender and number; before= is the word that follows it.

    agree("beau", "m", before="chat") is beau, agree("beau", "m", before="animal") is bel.
    """
    if gender == "m" and number == "singular" and before and begins_with_vowel_sound(before):
        return _BEFORE_VOWEL.get(word, word)
    form = feminine(word) if gender == "f" else word
    return plural(form) if number == "plural" else form


def definite(gender: Gender, number: Number) -> str:
    """The article le, la or les, before elision."""
    if number == "plural":
        return "les"
    return "la" if gender == "f" else "le"


def indefinite(gender: Gender) -> str:
    """The article un or une."""
    return "une" if gender == "f" else "un"


def partitive(gender: Gender) -> tuple[str, str]:
    """The article of what is not counted, before contraction: de + le pain, de + la soupe, de + l'eau."""
    return ("de", definite(gender, "singular"))


def possessive(owner: str, gender: Gender, number: Number, *, before: str) -> str:
    """The French for my, his, her, our or their; before= is the word that follows.

    It agrees with what is owned, not with the owner. Before a vowel sound ma becomes mon: mon école.
    """
    masculine, feminine_form, plural_form = _POSSESSIVES[owner]
    if number == "plural":
        return plural_form
    if gender == "m" or begins_with_vowel_sound(before):
        return masculine
    return feminine_form


def demonstrative(gender: Gender, number: Number, *, before: str) -> str:
    """The French for this and these: ce chat, cet animal, cette vache, ces chats."""
    if number == "plural":
        return "ces"
    if gender == "f":
        return "cette"
    return "cet" if begins_with_vowel_sound(before) else "ce"
