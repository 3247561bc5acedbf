"""The sentences of lessons: their lengths, and words that a reader would have to guess.

To check one lesson while you write it: python -m pytest tests/learn/course/test_prose.py -k 05
"""

import re
from statistics import mean

import pytest

from npformer.learn.course.length import FENCE, WORD, plain
from npformer.learn.course.lesson import all_lessons

MOST_WORDS_ON_AVERAGE = 17
LONG = 25  # words of a sentence
MOST_LONG = 0.08  # the share of longer sentences
each_lesson = pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.name)

# words of earlier lessons, and the standard terms that replace them
PRIVATE = {
    r"looks at\b|(tokens|words|queries|positions|heads) look at\b": "attends to",
    r"look(ing)? at (itself|themselves|each other)\b": "attends to",
    r"(may|can|could|must|does|do|should) (not )?look at\b": "may attend to",
    r"(being|is|are|was|were) looked at\b": "has attention weight",
    r"bends?\b": "nonlinearity",
    r"hears?\b|heard\b": "receives a gradient; attends to",
    r"(the|an|other|this|that|one|either|both) ways? round\b|way round\b": "transposed; in the other order",
    r"(the|a|this|that|its|their|whose|same|of) spread\b(?!-)|spread of\b": "standard deviation",
    r"foretells?\b|foretold\b": "predicts",
    r"yardsticks?\b": "measure; baseline",
    r"likeliest\b": "most probable",
    r"likeness\b": "similarity",
}


def sentences(prose):
    """Return the sentences of prose in Markdown, without headings, quotations and tables."""
    labels = r"<summary>.*?</summary>|</?details>|\*\*Question\.\*\*"
    text = re.sub(labels, "\n\n", FENCE.sub("\n\n", prose))
    found = []
    for block in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", plain(text)):
        if not re.match(r"[#>|]", block.strip()):
            line = " ".join(re.sub(r"^([-*]|\d+\.) ", "", block.strip()).split())
            ends = re.sub(r"\b(e\.g|i\.e|cf|vs|et al|Fig|eq|No|approx)\.", r"\1", line)
            found += re.split(r"(?<=[.!?])[\"”)*_]*\s+(?=[\"“(*_]*[A-Z0-9x√])", ends)
    return [sentence for sentence in found if WORD.search(sentence)]


def private_words(prose):
    """Return the private words in prose, without quotations, each with the standard term."""
    own = plain("\n".join(line for line in prose.splitlines() if not line.startswith(">")))
    found = [
        (match[0], term)
        for word, term in PRIVATE.items()
        for match in re.finditer(rf"\b(?:{word})", own, re.I)
    ]
    return [f"{word!r}: write {term}" for word, term in found]


def prose_of(lesson):
    return [cell.text for cell in lesson.cells if cell.kind == "prose"]


@each_lesson
def test_sentences_are_short(lesson):
    lengths = {
        sentence: len(WORD.findall(sentence)) for text in prose_of(lesson) for sentence in sentences(text)
    }
    long = [sentence for sentence, length in lengths.items() if length > LONG]
    assert mean(lengths.values()) <= MOST_WORDS_ON_AVERAGE
    assert len(long) <= MOST_LONG * len(lengths), "\n".join(long)


@each_lesson
def test_no_word_has_to_be_guessed(lesson):
    assert [found for text in prose_of(lesson) for found in private_words(text)] == []


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ("One. Two, e.g. three? *Four* $x.y$ is.", ["One.", "Two, e.g three?", "*Four* x is."]),
        ("# A heading\n\n> Quoted. Twice.\n\nIt costs .88 and\n1.5.", ["It costs .88 and 1.5."]),
        ("- one\n  goes on\n- two\n\n```sh\nno. Prose.\n```", ["one goes on", "two"]),
        (
            "**Question.** Why?\n\n<details><summary>Answer</summary>\nSo.\n</details>",
            ["Why?", "So."],
        ),
        ("The formula\n\n$$\nx = y. Z\n$$\n\nholds. `a. B` too.", ["The formula", "holds.", "x too."]),
    ],
)
def test_sentences_are_found(prose, expected):
    assert sentences(prose) == expected


@pytest.mark.parametrize(
    ("prose", "count"),
    [
        ("A token looks at itself, hears of it and bends.", 3),
        ("The mask says what it may look at; the spread of the scores is the yardstick.", 3),
        ("You look at the figure: it looks like a line, and the spread-out points are behind it.", 0),
        ("> Quoted: the way round.\n\n`hears` is code. The bender heartily foresees.", 0),
        ("It is the other way round, as foretold.", 2),
    ],
)
def test_private_words_are_found(prose, count):
    assert len(private_words(prose)) == count, private_words(prose)
