"""refused: the error for what the user gave, in one sentence."""

import pytest

from npformer import UserError


def refused(words):
    """Return the context in which a UserError must be raised, whose message matches the words."""
    return pytest.raises(UserError, match=words)
