"""Repairs of the learner's own code: edits after which all results of an exercise are right.

The child process tries the edits of npformer.checking.repair in the learner's functions. If all results of
all trials are then right, the edit names the mistake and its line. The message says what is wrong in the
line, and never shows the correct line.
"""
