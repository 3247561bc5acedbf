"""The sentences of lessons are short.

To check one lesson while you write it: python -m pytest tests/learn/course/test_prose.py -k 05
"""

import re
from statistics import mean

from course import each_lesson, texts_of

from npformer.learn.course.length import FENCE, WORD, plain

MOST_WORDS_ON_AVERAGE = 17
LONG = 25  # words of a sentence
MOST_LONG = 0.08  # the share of longer sentences


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


@each_lesson
def test_sentences_are_short(lesson):
    found = {sentence for text in texts_of([lesson], "prose") for sentence in sentences(text)}
    lengths = {sentence: len(WORD.findall(sentence)) for sentence in found}
    long = [sentence for sentence, length in lengths.items() if length > LONG]
    assert mean(lengths.values()) <= MOST_WORDS_ON_AVERAGE
    assert len(long) <= MOST_LONG * len(lengths), "\n".join(long)
