"""Translate a test set with the pretrained translator, and compare its BLEU with the model card.

python tests/shipped_score.py test.en test.de
"""

import json
import subprocess
import sys

from npformer.pretrained import read_pretrained

# rounding on another processor may change a few words
TOLERANCE = 0.1


def main(source, reference):
    """Return the exit status, 1 if the score differs from that of the card."""
    command = ["npformer", "score", "--model", "en-de", source, reference, "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    (told,) = (each.bleu for each in read_pretrained("en-de").card.scores if each.setting == found["setting"])
    print(f"BLEU {found['bleu']:.2f}, {told:.2f} on the card: {found['signature']}")
    return abs(found["bleu"] - told) > TOLERANCE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
