"""Translate a test set by the translator that ships, and hold its BLEU to the card.

python tests/shipped_score.py test.en test.de
"""

import json
import subprocess
import sys

from npformer.pretrained import load

# another processor's rounding may choose another word here and there
TOLERANCE = 0.1


def main(source, reference):
    """Returns the exit status, 1 where the score is not the card's."""
    command = ["npformer", "score", "--pretrained", "en-de", source, reference, "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    (told,) = (each.bleu for each in load("en-de").card.scores if each.setting == found["setting"])
    print(f"BLEU {found['bleu']:.2f}, {told:.2f} on the card: {found['signature']}")
    return abs(found["bleu"] - told) > TOLERANCE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
