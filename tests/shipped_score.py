"""Measure the scores on the model card of the translator that ships, and compare them with the card.

python tests/shipped_score.py FOLDER [N]

FOLDER has the files of Multi30k, at any depth. With N, only the first N scores are measured.
"""

import json
import subprocess
import sys
from pathlib import Path

from npformer.pretrained import MeasuredScore, read_pretrained

# rounding on another processor may change a few words
TOLERANCE = 0.1  # of BLEU of a test set, and of half of the width of its interval
TOLERANCE_BY_LENGTH = 0.5  # of BLEU of the sentences of a length, which are fewer
FEW_WORDS = 5  # invented words


def main(folder, most=None):
    """Return the exit status, 1 if a score differs from that of the card."""
    files = {path.name: path for path in Path(folder).rglob("*") if path.is_file()}
    card = read_pretrained("en-de").card
    differences = 0
    for told in card.scores[: most and int(most)]:
        found = measure(told, files)
        lines = list(compare(found, told))
        print(f"{told.reference}, {told.search}: BLEU {found.score}, {told.score} on the card")
        print("".join(f"    {line}\n" for line in lines), end="", flush=True)
        differences += len(lines)
    return differences > 0


def measure(told, files):
    """Return the score that the command of the card prints."""
    paths = [str(files[name]) for name in (told.source, told.reference)]
    words = ["--known-words", str(files[told.known_words])]
    command = ["npformer", "score", "--model", "en-de", *paths, "--beam", str(told.beam), *words, "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return MeasuredScore.from_dict(json.loads(done.stdout))


def compare(found, told):
    """Yield a line for each number that differs from that of the card."""
    for name in ("signature", "setting", "sentences", "empty", "length_penalty", "weights", "known_words"):
        if getattr(found, name) != getattr(told, name):
            yield f"{name} {getattr(found, name)}, {getattr(told, name)} on the card"
    for name in ("bleu", "half_width"):
        if abs(getattr(found, name) - getattr(told, name)) > TOLERANCE:
            yield f"{name} {getattr(found, name):.2f}, {getattr(told, name):.2f} on the card"
    for name in ("invented", "invented_in_reference"):
        if abs(getattr(found, name) - getattr(told, name)) > FEW_WORDS:
            yield f"{name} {getattr(found, name)}, {getattr(told, name)} on the card"
    groups = [[(part.lengths, part.sentences) for part in score.by_length] for score in (found, told)]
    if groups[0] != groups[1]:
        yield f"lengths {groups[0]}, {groups[1]} on the card"
    for part, other in zip(found.by_length, told.by_length, strict=False):
        if abs(part.bleu - other.bleu) > TOLERANCE_BY_LENGTH:
            yield f"{part.lengths} words: BLEU {part.bleu:.2f}, {other.bleu:.2f} on the card"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
