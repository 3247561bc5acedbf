"""A residual spelt out, as in tensor2tensor: what is done before a sublayer and after it, a letter each."""

import re
from typing import Any

import numpy as np

from npformer.errors import UserError
from npformer.layers.dropout import Dropout
from npformer.layers.norm import LayerNorm
from npformer.layers.residual import Residual, ResidualCache

SPELLING = re.compile(r"n?-(?!.*(.).*\1)[nd]*a[nd]*")  # no letter twice after the dash, and one a there


class SequenceResidual(Residual):
    """The frame round a sublayer f, in the order of a sequence "before-after".

        n  normalizes      d  drops      a  adds what went round the sublayer

    "n-da" is y = x + dropout(f(norm(x))), Residual's "pre"; "-dan" is its "post". "n-dna" normalizes what
    the sublayer made before it is added, and "n-dan" has a norm on either side.
    Shapes: as in Residual, whose halves it has. Errors: UserError for another spelling.
    Source: tensor2tensor's layer_preprocess_sequence and layer_postprocess_sequence.
    """

    def __init__(self, d_model, *, sequence="n-da", rate=0.0, eps=1e-5, dtype=np.float32):
        check_sequence(sequence)
        before, _, self.after = sequence.partition("-")
        self.norm_before: Any = LayerNorm(d_model, eps=eps, dtype=dtype) if before else None
        self.norm_after: Any = LayerNorm(d_model, eps=eps, dtype=dtype) if "n" in self.after else None
        self.dropout = Dropout(rate if "d" in self.after else 0.0)

    def enter(self, x):
        """What the sublayer receives. Returns (h, cache)."""
        return (x, None) if self.norm_before is None else self.norm_before.forward(x)

    def join(self, x, h, entered=None, *, train=False, rng=None):
        """What the letters after the dash make of the sublayer's h. Returns (y, cache)."""
        keep = norm = None
        for letter in self.after:
            if letter == "d":
                h, keep = self.dropout.forward(h, train=train, rng=rng)
            elif letter == "a":
                h = x + h
            else:
                h, norm = self.norm_after.forward(h)
        return h, ResidualCache(entered, keep, norm)

    def join_backward(self, dy, cache):
        """Returns (dx, dh): the same letters, read from behind."""
        dx, dh = 0, dy
        for letter in reversed(self.after):
            if letter == "d":
                dh = self.dropout.backward(dh, cache.keep)
            elif letter == "a":
                dx = dh  # a sum hands its gradient to both
            else:
                dh = self.norm_after.backward(dh, cache.norm)
        return dx, dh

    def enter_backward(self, dx, dh, cache):
        """Returns dx: the way round and the way through the sublayer, added."""
        # h = norm(x)
        if self.norm_before is not None:
            dh = self.norm_before.backward(dh, cache.entered)
        return dx + dh


def check_sequence(sequence):
    """Errors: UserError for what is no sequence before and after a sublayer."""
    if not SPELLING.fullmatch(sequence):
        raise UserError(
            f"{sequence!r} is no sequence round a sublayer: write n or nothing, a dash, then a (adds) once, "
            "with or without d (drops) and n (normalizes), as n-da"
        )
