"""Planted bugs: single wrong lines in backward passes, decoding and training, which the tests must catch.

python tests/planted_bugs/run.py plants each in a copy of the package and runs the tests on it. The other
text files in this folder declare them, each those of one topic (see bug.bugs_in).

Some changes look like bugs but are correct, so they are not in the list:
- FeedForward.backward with dropout and activation exchanged: both multiply element by element, and the
  order of factors does not matter.
- attention_backward without the mask on the gradient, if the fill is -inf: the weight is 0, and
  softmax_backward multiplies by it. With a finite fill it is a bug, and is in the list.
- mix_states_backward with a gradient for the last step's p: this gradient is the last weight's minus
  itself, so 0.
"""

from pathlib import Path

from planted_bugs.bug import Bug, NoLongerApplies, bugs_in

TOPICS = sorted(Path(__file__).parent.glob("*.txt"))
BUGS = tuple(bug for topic in TOPICS for bug in bugs_in(topic.read_text(encoding="utf-8")))

__all__ = ["BUGS", "Bug", "NoLongerApplies"]
