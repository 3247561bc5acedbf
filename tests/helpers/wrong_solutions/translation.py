"""Wrong ways to join subwords, and wrong BLEU scores."""

from wrong_solutions.wrong import Wrong

FROM_THE_LEFT = """
def join_pieces(pieces, text):
    parts = list(text)
    i = 0
    while i < len(parts) - 1:
        if parts[i] + parts[i + 1] in pieces.ranks:
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
            i = max(0, i - 1)
        else:
            i += 1
    return parts
"""
LONGEST_FIRST = """
def join_pieces(pieces, text):
    parts, start = [], 0
    while start < len(text):
        stops = range(len(text), start, -1)
        stop = next((stop for stop in stops if text[start:stop] in pieces.ranks), start + 1)
        parts.append(text[start:stop])
        start = stop
    return parts
"""
MEAN_OF_LINES = """
def bleu(translations, references):
    from npformer.learn.exercises.topics.translation import bleu as of_lines

    return np.mean([of_lines([one], [other]) for one, other in zip(translations, references)])
"""

TRANSLATION = (
    Wrong("join-pieces", "", FROM_THE_LEFT, "the pieces of ▁tower"),
    Wrong("join-pieces", "", LONGEST_FIRST, "the pieces of ▁tower"),
    Wrong("bleu", "(ours & theirs)", "(ours)", "repeats a word|theirs"),
    Wrong("bleu", "min(1.0, math.exp(1 - wanted / written))", "math.exp(1 - wanted / written)", "longer|min"),
    Wrong("bleu", "penalty * math", "math", "factor penalty|shorter"),
    Wrong("bleu", "", MEAN_OF_LINES, "two lines"),
    Wrong("bleu", ".mean()", ".sum()", "averaged|summed|mean"),
)
