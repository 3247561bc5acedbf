"""English spelling rules: a or an, plurals, and the s of the third person."""

from collections.abc import Sequence

_IRREGULAR_PLURALS = {"man": "men", "woman": "women"}


def join_english(words: Sequence[str]) -> str:
    """Write words as a sentence, with an for a before a vowel: a + animal = an animal."""
    following = [*words[1:], "."]
    pairs = zip(words, following, strict=True)
    return " ".join("an" if word == "a" and after[0] in "aeiou" else word for word, after in pairs)


def plural(noun: str) -> str:
    """Return the plural of a noun: cat, cats; beach, beaches; man, men."""
    if noun in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[noun]
    return _with_s(noun)


def third_person(verb: str) -> str:
    """Return the form after he, she or it: cross, crosses; go, goes; find, finds; have, has."""
    return "has" if verb == "have" else _with_s(verb)


def negated(auxiliary: str, negative: bool) -> tuple[str, ...]:
    """Return an auxiliary, with not if `negative`: did, didn't; can, can't."""
    if not negative:
        return (auxiliary,)
    if auxiliary == "am":  # English has no contraction of am not
        return ("am", "not")
    return ("can't" if auxiliary == "can" else auxiliary + "n't",)


def _with_s(word: str) -> str:
    """Add s, or es after s, x, z, ch, sh and o. A y after a consonant becomes ies."""
    if word.endswith(("s", "x", "z", "ch", "sh", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"
