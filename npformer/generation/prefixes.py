"""The tokens with which translations must begin, which the searches choose before they search."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError, quantity
from npformer.generation.search import check_token
from npformer.validation import short

Begin = Sequence[Sequence[int]] | None  # the first ids of each translation


class Prefixes:
    """The tokens with which translations must begin.

    Args:
        config: The model's configuration.
        begin: The ids of the first tokens of each of B translations, perhaps none. None for no such tokens.
        limits: The largest number of tokens of each translation, of shape (B,).
        forbidden: The ids that are never chosen.
        forced_bos: The token that stands before every beginning, or None for no such token.

    Raises:
        UserError: If there are not B lists, if one is too long or has an id that is never chosen, or if
            forced_bos is outside the vocabulary or never chosen.
    """

    def __init__(
        self,
        config: Any,
        begin: Begin,
        limits: Array,
        forbidden: list[int],
        forced_bos: int | None = None,
    ) -> None:
        begin = begin_for_each(begin, len(limits))
        if forced_bos is not None:
            check_token(config, "forced_bos", forced_bos)
            begin = [[forced_bos, *ids] if len(ids) and ids[0] != forced_bos else ids for ids in begin]
        allowed = set(range(config.target_vocab)) - {*forbidden, config.end_id}
        if forced_bos is not None and forced_bos not in allowed:
            raise UserError(f"forced_bos is {forced_bos}, which a translation cannot have: leave it out")
        for ids, limit in zip(begin, limits.tolist(), strict=True):
            if len(ids) > limit:
                raise UserError(
                    f"begin has {quantity(len(ids), 'token')}, and this translation has {limit} at most: "
                    "give a shorter beginning, or a larger max_length"
                )
            for token in ids:
                if token not in allowed:
                    raise UserError(
                        f"begin has the id {token}, which a translation cannot have: leave it out"
                    )
        self.ids = np.full(
            (len(begin), max(map(len, begin), default=0)), -1
        )  # (B, P) -1 where any may follow
        for row, ids in zip(self.ids, begin, strict=True):
            row[: len(ids)] = ids

    def next(self, sentence: Array, length: int) -> Array | None:
        """Return the token that must follow `length` tokens of each hypothesis, or -1 where any may follow.

        Shapes: sentence (R,), the number of each hypothesis's sentence -> (R,). None if all are -1.
        """
        if length >= self.ids.shape[1]:
            return None
        tokens: Array = self.ids[sentence, length]
        return tokens


def begin_for_each(begin: Begin, n: int) -> Sequence[Sequence[int]]:
    """Return the ids with which each of n translations begins, by default none.

    Raises:
        UserError: If there are not n lists.
    """
    if begin is None:
        return [[]] * n
    if not (_is_list(begin) and all(map(_is_list, begin))):
        raise UserError(f"begin is {short(begin)}: give a list of ids for each sentence")
    if len(begin) != n:
        raise UserError(f"begin has {quantity(len(begin), 'list')} of ids: give one for each sentence")
    return begin


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
