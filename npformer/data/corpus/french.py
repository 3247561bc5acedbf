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

# the French for an English article: masculine, feminine, plural
_ARTICLES = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),
    "some": ("un", "une", "des"),
    "this": ("ce", "cette", "ces"),
    "these": ("ce", "cette", "ces"),
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
# the forms before a vowel sound: cet animal, mon école
_ARTICLES_BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}


def begins_with_vowel_sound(word: str) -> bool:
    """Return whether a word begins with a vowel or a silent h, or is y: the word before it may then elide."""
    return word[0] in _VOWELS or word == "y" or (word[0] == "h" and word not in ASPIRATED)


def join_french(words: Sequence[str]) -> str:
    """Write words as a sentence, with elision (la + eau = l'eau) and contraction (à + le = au).

    Elision comes first, because an elided article is not contracted: à + le + hôtel = à l'hôtel.
    """
    pieces: list[str] = []
    article_taken = False  # True if this word is already part of a contraction
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
    """Return whether the word loses its last vowel before the one that follows; "" follows the last word."""
    if word == "si":
        return following in ("il", "ils")
    return word in _ELIDED and following != "" and begins_with_vowel_sound(following)


def plural(word: str) -> str:
    """Return the plural of a noun, or of a masculine or feminine adjective: chat, chats; cheval, chevaux."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    if word.endswith("eau") or word == "hibou":
        return word + "x"
    return word + "s"


def feminine(word: str) -> str:
    """Return the feminine of an adjective, participle or trade: petite, heureuse, blanche."""
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
    """Return the form of an adjective or participle. before= is the word that follows it.

    agree("beau", "m", before="chat") is beau, agree("beau", "m", before="animal") is bel.

    Args:
        word: The word in the masculine singular.
        gender: "m" or "f".
        number: "singular" or "plural".
        before: The word that follows, if any.
    """
    if gender == "m" and number == "singular" and before and begins_with_vowel_sound(before):
        return _BEFORE_VOWEL.get(word, word)
    form = feminine(word) if gender == "f" else word
    return plural(form) if number == "plural" else form


def article(english: str, gender: Gender, number: Number, *, before: str = "") -> str:
    """Return the French for an English article, before elision; before= is the word that follows it.

    The French word agrees with the thing: ce chat, cet animal, cette vache, ces chats; ma clé, mon école.

    Args:
        english: The English word: the, a, some, this, these, or my, his, her, our or their.
        gender: "m" or "f".
        number: "singular" or "plural".
        before: The word that follows, if any.
    """
    masculine, feminine_form, plural_form = _ARTICLES[english]
    if number == "plural":
        return plural_form
    form = feminine_form if gender == "f" else masculine
    elided = before and begins_with_vowel_sound(before)
    return _ARTICLES_BEFORE_VOWEL.get(form, form) if elided else form


def negated(finite: str, negative: bool) -> tuple[str, ...]:
    """Return a finite verb, with ne ... pas around it if `negative`."""
    return ("ne", finite, "pas") if negative else (finite,)
