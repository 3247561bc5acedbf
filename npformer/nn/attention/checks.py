"""Checks of the settings of multi-head attention, and of the arrays that it receives."""

from typing import Any

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.packing import Packing
from npformer.nn.checks import check_batches, check_floats
from npformer.validation import require_choice, require_counts

FUSED = {"no": 3, "kv": 2, "qkv": 1}  # the number of projections


def check_heads(d_model: int, n_heads: int, n_kv_heads: int, d_head: int | None) -> None:
    """Check that the width can be divided among the heads, and the query heads among the heads of keys.

    Args:
        d_model: The width of the inputs.
        n_heads: The number of query heads.
        n_kv_heads: The number of heads of keys and values.
        d_head: The width of a head, or None for d_model / n_heads.

    Raises:
        UserError: If a number is below 1, or if one cannot be divided by the other.
    """
    require_counts(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
    if d_head is None and d_model % n_heads:
        raise UserError(
            f"d_model {d_model} is not divisible by {n_heads} heads: change one of them, or give d_head"
        )
    if n_heads % n_kv_heads:
        raise UserError(
            f"{n_heads} query heads cannot share {n_kv_heads} heads of keys and values equally: make "
            "n_kv_heads a divisor of n_heads"
        )


def check_fused(fused: str, d_model: int, kdim: int, vdim: int) -> None:
    """Check that projections are fused in a known way, and only if their inputs have one width.

    Args:
        fused: One of FUSED.
        d_model: The width of the input of the queries.
        kdim: The width of the input of the keys.
        vdim: The width of the input of the values.

    Raises:
        UserError: If fused is unknown, or if the widths differ.
    """
    require_choice("fused", fused, tuple(FUSED))
    if fused != "no" and not d_model == kdim == vdim:
        raise UserError(
            f'projections fused as "{fused}" have one input, and d_model is {d_model}, kdim {kdim} and vdim '
            f'{vdim}: make them equal, or use fused="no"'
        )


def check_inputs(layer: Any, key: Array | None, value: Array | None) -> None:
    """Check that the layer can take the arrays among query, key and value that the caller gave.

    Args:
        layer: The layer.
        key: The input of the keys, or None.
        value: The input of the values, or None.

    Raises:
        UserError: If there is a value without a key, if there is a key and the layer computes self-attention
            only, or if fused projections take fewer arrays.
    """
    if key is None and value is not None:
        raise UserError("value was given without key: give both, or neither")
    if key is not None:
        layer.check_cross_attention()
    n_inputs, most = 1 + (key is not None) + (value is not None), FUSED[layer.fused]
    if n_inputs > most:
        raise UserError(
            f'projections fused as "{layer.fused}" take {most} of query, key and value, and {n_inputs} were '
            'given: use fused="no"'
        )


def check_arrays(
    layer: Any,
    query: Array,
    key: Array,
    value: Array,
    packing: Packing | None,
    key_packing: Packing | None,
) -> None:
    """Check the shapes of the inputs, (B, T, D) or packed rows (N, D).

    Args:
        layer: The layer.
        query: The input of the queries, of shape (B, T, D), or packed rows.
        key: The input of the keys, of shape (B, S, D), or packed rows.
        value: The input of the values, of shape (B, S, D), or packed rows.
        packing: The packing of the queries, or None.
        key_packing: The packing of the keys and values, or None.

    Raises:
        UserError: If an array has another dtype or width, or if batch sizes or numbers of keys differ.
    """
    name = type(layer).__name__
    d_model, kdim, vdim = layer.d_inputs
    for role, x, x_packing, width in (
        ("query", query, packing, d_model),
        ("key", key, key_packing, kdim),
        ("value", value, key_packing, vdim),
    ):
        check_floats(x, ("B", "T", width) if x_packing is None else ("N", width), name, role)
    if packing is None and key_packing is None:
        check_batches(name, query=query, key=key, value=value)
        if key.shape[1] != value.shape[1]:
            raise UserError(
                f"{name} takes a value for each key and got key of shape {key.shape} and value of shape "
                f"{value.shape}: make the second axes equal"
            )
