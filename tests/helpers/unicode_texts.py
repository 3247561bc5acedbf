"""Random texts that show where tokenizers differ: marks, emoji, directions of writing, spaces, long runs."""

import random
import sys
import unicodedata

WORDS = [
    *("The", "man", "is", "riding", "his", "bicycle.", "don't", "we've", "I'M", "2026", "3.14"),
    *("naïve", "Straße", "Été", "привет", "κόσμος", "x_1=f(y);"),
]
RIGHT_TO_LEFT = [
    *("שלום", "ש\u05b8לום", "مرحبا", "الع\u064eر", "لا", "١٢٣"),
    *("\u200fאב\u200e", "\u202eabc\u202c"),
]
EMOJI = [
    *("😀", "👍\U0001f3fd", "🇩🇪🇫🇷", "❤\ufe0f", "1\ufe0f\u20e3", "☺\ufe0e", "\u200d", "\ufe0f"),
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",  # a family: four persons with joiners
    "\U0001f3f3\ufe0f\u200d\U0001f308",
]
ASIAN = [
    *("你好", "世界", "東京", "ﾊﾟ", "が", "か\u3099", "नमस्ते", "ไทย", "ភាសា"),
    *("한국어", "\u1112\u1161\u11ab"),  # Korean syllables, and one as its three letters
]
SPACES = [
    *(" ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x85", "\xa0", "\u1680", "\u2003", "\u2009"),
    *("\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff", "\u180e"),
    "   \n\n  ",
]
COMPATIBLE = [
    *("ﬁ", "½", "㌔", "Å", "\u212b", "ſ", "İ", "ı", "ẞ", "ß", "Ａ", "𝔸", "①", "…", "™", "ﷺ", "ΰ", "ŉ"),
    *("\u0344", "¨", "x\u0344"),
]
CONTROLS = [
    *("\0", "\x01", "\x1b[31m", "\x7f", "\x9f", "\xad", "\ufffd", "\ufffe", "\U0010ffff", "\ue000"),
    *("▁", "Ġ", "##s", "<0xE2>"),  # what tokenizers write for other things
]
MARKS = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) == "Mn"]
COMMON_MARKS = ["\u0301", "\u0323", "\u0308", "\u0327", "\u0345", "\u0338", "\u3099"]
REPEATED = [*"a.A ▁é\n\0", "\u0301", "ab", "😀", "\xa0", "語"]


def unicode_texts(count, seed, strings=()):
    """Return texts without lone surrogates: the empty one, each fragment alone, and random ones.

    Args:
        count: The number of texts.
        seed: The seed.
        strings: Strings that texts contain more often than by chance, such as special tokens.
    """
    rng = random.Random(seed)
    lists = [RIGHT_TO_LEFT, EMOJI, ASIAN, SPACES, COMPATIBLE, CONTROLS, WORDS, list(strings) or WORDS]
    texts = ["", *dict.fromkeys(each for group in lists for each in group)]
    lists += [WORDS, WORDS, [" "], [" "], [" "]]  # more often than the others
    while len(texts) < count:
        texts.append("".join(_fragment(rng, lists) for _ in range(rng.randint(1, 12))))
    return texts[:count]


def _fragment(rng, lists):
    """Return a fragment of a text: one of a list, a run, a letter with marks or random characters."""
    kind = rng.randrange(12)
    if kind == 0:
        return _character(rng)
    if kind == 1:
        return rng.choice("aeoucnESß가अא") + "".join(_mark(rng) for _ in range(rng.randint(1, 4)))
    if kind == 2 and rng.random() < 0.3:
        return rng.choice(REPEATED) * rng.choice([2, 7, 40, 120, 300])
    if kind == 3:
        return "".join(chr(rng.randrange(0x20, 0x250)) for _ in range(rng.randint(1, 6)))
    return rng.choice(rng.choice(lists))


def _mark(rng):
    return rng.choice(COMMON_MARKS) if rng.random() < 0.7 else rng.choice(MARKS)


def _character(rng):
    """Return a random character of any plane that is not a surrogate."""
    code = rng.randrange(rng.choice([0x80, 0x800, 0xD800, 0x20000, 0x110000]))
    return "\u0101" if 0xD800 <= code <= 0xDFFF else chr(code)
