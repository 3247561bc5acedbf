"""Indexing as on a GPU: indices wrap around, and concurrent writes to one entry race."""

import numpy as np

from ._values import DeviceValue, device_array, operand, unsupported, upload, wrap

ATOMIC_ADD = ("int32", "uint32", "uint64", "float16", "float32", "float64")

_races = np.random.default_rng(0)


def seed_races(seed):
    """Set the seed that decides the races from now on."""
    global _races
    _races = np.random.default_rng(seed)


def getitem(array, key):
    """Return a view for slices and integers (0-d, not a scalar), a copy for index arrays and masks."""
    plain = _plain_key(array, key)
    result = array[plain]
    return wrap(result.copy() if _index_arrays(plain) else result)  # in C order, as in CuPy


def setitem(array, key, value):
    """Assign values. If index arrays contain an entry twice, any write but the last one, NumPy's, may win."""
    plain = _plain_key(array, key)
    value = operand(value)
    if not any(index.dtype != bool for index in _index_arrays(plain)):
        array[plain] = value
        return
    places, values = _places_and_values(array, plain, value)
    winners = _race(places, array.size)
    written = np.flatnonzero(winners >= 0)
    array[np.unravel_index(written, array.shape)] = values[winners[written]]


def _race(places, size):
    """Return for each of `size` entries the write that wins (-1: there is none)."""
    numpy_winner = np.full(size, -1)
    numpy_winner[places] = np.arange(places.size)
    order = _races.permutation(places.size)
    loses = numpy_winner[places[order]] == order
    # the write that would win in NumPy comes first, and the others overwrite it
    order = np.concatenate([order[loses], order[~loses]])
    winners = np.full(size, -1)
    winners[places[order]] = order
    return winners


def scatter_add(array, key, value):
    """Implement `add.at` for the dtypes with GPU atomics: every write counts."""
    target = device_array(array)
    if target.dtype.name not in ATOMIC_ADD:
        raise TypeError(f"cupy.add.at only supports {', '.join(ATOMIC_ADD)}, not {target.dtype}")
    places, values = _places_and_values(target, _plain_key(target, key), operand(value))
    np.add.at(target, np.unravel_index(places, target.shape), values.astype(target.dtype))


def wrapped(indices, length):
    """Return the indices modulo the length of their axis: CuPy raises no IndexError for index arrays."""
    if indices.dtype.kind not in "iu":
        raise IndexError(f"arrays used as indices must be of integer or boolean type, not {indices.dtype}")
    if length == 0 and indices.size:
        raise IndexError("cannot do a non-empty take from an empty axis")
    return np.asarray(indices.astype(np.int64) % max(length, 1))


def index_argument(value):
    """Return the private array of an index: a device array, an integer, or a list of them (uploaded)."""
    if isinstance(value, (bool, np.bool)):
        raise unsupported(value)
    if isinstance(value, (int, np.integer)):
        return np.asarray(value)
    if isinstance(value, list):
        return upload(value, None if value else np.int32)._array
    return device_array(value)


def _index_arrays(plain):
    return [part for part in plain if isinstance(part, np.ndarray)]


def _places_and_values(array, plain, value):
    """Return the flat positions of the indexed entries in order, and the value for each."""
    places = np.arange(array.size).reshape(array.shape)[plain]
    return places.ravel(), np.broadcast_to(value, places.shape).ravel()


def _plain_key(array, key):
    """Return the key with private arrays, wrapped indices, and an Ellipsis, which avoids NumPy scalars."""
    parts = [_plain_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    taken = sum(_axes_taken(part) for part in parts)
    if taken > array.ndim:
        raise IndexError(f"too many indices for array: it is {array.ndim}-dimensional, {taken} were indexed")
    axis = 0
    for position, part in enumerate(parts):
        if part is Ellipsis:
            axis += array.ndim - taken
        elif isinstance(part, np.ndarray) and part.dtype != bool:
            parts[position] = wrapped(part, array.shape[axis])
        axis += _axes_taken(part)
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    return tuple(parts)


def _plain_part(part):
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        if any(isinstance(end, (DeviceValue, np.ndarray)) for end in (part.start, part.stop, part.step)):
            raise TypeError("slice ends must be integers, not arrays")
        return part
    if isinstance(part, (int, np.integer)) and not isinstance(part, bool):
        return int(part)
    if isinstance(part, np.ndarray):
        raise TypeError("a numpy.ndarray as index: it would be copied to the device, move it explicitly")
    return index_argument(part)


def _axes_taken(part):
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1
