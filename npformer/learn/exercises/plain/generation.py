"""Chapter 24: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain

RESULT = "tokens[:, :-1], tokens[:, 1:]"
ORDER = "np.argsort(-p, axis=-1)"
KEPT = "before < top_p"
KEY_HEADS = "config.n_heads if config.n_kv_heads is None else config.n_kv_heads"
WIDTH = "config.d_model // config.n_heads"
PLACES = "length if config.window is None else min(length, config.window)"
VIEWS = "k_room[:, :, :end], v_room[:, :, :end]"
WRITE_K, WRITE_V = "k_room[:, :, length:end] = k", "v_room[:, :, length:end] = v"


@plain(
    "windows",
    mistake(
        "the targets are the inputs: they must be shifted by one token",
        RESULT,
        RESULT[:14] + ", tokens[:, :-1]",
    ),
    mistake("inputs and targets are exchanged", RESULT, "tokens[:, 1:], tokens[:, :-1]"),
    mistake(
        "the targets are moved in a circle: the last one is the first token of the window",
        RESULT,
        "tokens[:, :-1], np.roll(tokens[:, :-1], -1, axis=1)",
    ),
    mistake(
        "the windows begin one token too late", "np.arange(length + 1)", "np.arange(1, length + 2) % len(ids)"
    ),
    mistake(
        "the windows have one token too few: length is the number of targets",
        "np.arange(length + 1)",
        "np.arange(length)",
    ),
    mistake(
        "starts is multiplied by length: it contains the places of tokens, not the numbers of windows",
        "starts[:, None] +",
        "length * starts[:, None] % (len(ids) - length) +",
    ),
    mistake(
        "all windows begin at the first place: starts is not used", "starts[:, None]", "0 * starts[:, None]"
    ),
    mistake(
        "the targets are two tokens later than the inputs",
        "ids[places]",
        "ids[places]",
        RESULT,
        "tokens[:, :-1], ids[(places[:, 1:] + 1) % len(ids)]",
    ),
    mistake("the windows begin one token too early", "np.arange(length + 1)", "np.arange(-1, length)"),
    mistake(
        "the windows follow one another from the first start: each begins at its own start",
        "starts[:, None] +",
        "(starts[0] + length * np.arange(len(starts)))[:, None] % (len(ids) - length) +",
    ),
    mistake(
        "the rows are one long text when the targets are shifted: the last target of a row is the first "
        "input of "
        "the next row, and must be the next token of the text",
        RESULT,
        "tokens[:, :-1], np.roll(tokens[:, :-1], -1)",
    ),
    mistake(
        "the last target is repeated: it must be the token after the window",
        RESULT,
        "tokens[:, :-1], np.concatenate([tokens[:, 1:-1], tokens[:, -2:-1]], 1)",
    ),
    mistake(
        "the targets are the places of the tokens: they must be the tokens",
        RESULT,
        "tokens[:, :-1], places[:, 1:]",
    ),
    mistake(
        "the places are returned: they must be replaced by the tokens at these places",
        "ids[places]",
        "places",
    ),
    mistake("the targets are only the last token of each window", RESULT, "tokens[:, :-1], tokens[:, -1:]"),
    mistake(
        "inputs and targets contain length + 1 tokens: each has the length T",
        RESULT,
        "tokens, tokens",
    ),
    mistake(
        "the tokens of a window are in the reverse order",
        "np.arange(length + 1)",
        "np.arange(length, -1, -1)",
    ),
    mistake(
        "the targets are shifted along the windows: they must be shifted along the tokens",
        RESULT,
        "tokens[:, :-1], np.roll(tokens[:, :-1], -1, axis=0)",
    ),
)
def windows(ids: Any, starts: Any, length: Any) -> Any:
    """Return the inputs and the targets."""
    places = starts[:, None] + np.arange(length + 1)
    tokens = ids[places]
    return tokens[:, :-1], tokens[:, 1:]


@plain(
    "temperature",
    mistake(
        "the logits are multiplied by the temperature instead of divided",
        "logits / temperature",
        "logits * temperature",
    ),
    mistake("the temperature is left out", "logits / temperature", "logits"),
    mistake(
        "the maximum is not subtracted before exp, so that large logits give inf",
        "z = z - z.max(-1, keepdims=True)",
        "pass",
    ),
    mistake("the sum runs over the batch: over axis 0 instead of the last one", "e.sum(-1,", "e.sum(0,"),
    mistake("the probabilities are not divided by their sum", "e / e.sum(-1, keepdims=True)", "e"),
    mistake("the sum runs over all rows together", "e.sum(-1, keepdims=True)", "e.sum()"),
    mistake(
        "the square root of the temperature is used", "logits / temperature", "logits / temperature**0.5"
    ),
    mistake(
        "the probabilities are divided by the temperature: the logits must be divided, before the softmax",
        "z = logits / temperature",
        "z = logits",
        "return e / e.sum(-1, keepdims=True)",
        "return e / e.sum(-1, keepdims=True) / temperature",
    ),
    mistake(
        "the softmax is applied twice: divide the logits, not the probabilities",
        "z = logits / temperature",
        "z = np.exp(logits - logits.max(-1, keepdims=True)); z = z / z.sum(-1, keepdims=True) / temperature",
    ),
    mistake(
        "the logarithms of the probabilities are returned",
        "return e / e.sum(-1, keepdims=True)",
        "return np.log(e / e.sum(-1, keepdims=True))",
    ),
    mistake("the square of the temperature is used", "logits / temperature", "logits / temperature**2"),
    mistake(
        "temperature is the base of the power: use exp(logits / temperature)",
        "e = np.exp(z)",
        "e = temperature ** (z * temperature)",
    ),
    mistake(
        "1 is added to the sum: each row must sum to 1",
        "e / e.sum(-1, keepdims=True)",
        "e / (1 + e.sum(-1, keepdims=True))",
    ),
    mistake(
        "the sign of the logits is wrong: the token with the smallest logit is the most probable",
        "logits / temperature",
        "-logits / temperature",
    ),
    mistake("powers of 2 are used instead of exp", "np.exp(z)", "2.0**z"),
)
def token_probabilities(logits: Any, *, temperature: Any) -> Any:
    """Return softmax(logits / temperature)."""
    z = logits / temperature
    z = z - z.max(-1, keepdims=True)
    e = np.exp(z)
    return e / e.sum(-1, keepdims=True)


@plain(
    "nucleus",
    mistake(
        "the token that reaches top_p is left out: it belongs to the nucleus",
        KEPT,
        "before + ranked <= top_p",
    ),
    mistake("one token too many is kept if the sum is exactly top_p", KEPT, "before <= top_p"),
    mistake(
        "the probabilities are not divided by their sum", "ranked / ranked.sum(-1, keepdims=True)", "ranked"
    ),
    mistake("the least probable tokens are kept: the order is reversed", ORDER, "np.argsort(p, axis=-1)"),
    mistake(
        "the tokens are not sorted by their probabilities", ORDER, "np.argsort(0 * p, axis=-1, kind='stable')"
    ),
    mistake(
        "the result has the sorted order: the probabilities must go back to the places of their tokens",
        "np.put_along_axis(result, order, ranked / ranked.sum(-1, keepdims=True), -1)",
        "result = ranked / ranked.sum(-1, keepdims=True)",
    ),
    mistake(
        "top_p is a threshold for single probabilities: it must be one for their sum",
        KEPT,
        "ranked >= (1 - top_p) * ranked.max(-1, keepdims=True)",
    ),
    mistake(
        "the first row decides for all: each row has its own nucleus",
        KEPT,
        "np.broadcast_to(before[:1] < top_p, p.shape)",
    ),
    mistake(
        "the token that reaches top_p is left out: it belongs to the nucleus",
        KEPT,
        "(before + ranked <= top_p) | (np.arange(p.shape[-1]) == 0)",
    ),
    mistake(
        "the token that reaches top_p is left out: it belongs to the nucleus",
        KEPT,
        "(before + ranked < top_p) | (np.arange(p.shape[-1]) == 0)",
    ),
    mistake(
        "the token that reaches top_p is left out: it belongs to the nucleus", KEPT, "before + ranked < top_p"
    ),
    mistake(
        "top_p is a threshold for single probabilities: it must be one for their sum",
        KEPT,
        "ranked >= np.minimum(top_p, ranked.max(-1, keepdims=True))",
    ),
    mistake(
        "top_p is a threshold for single probabilities: it must be one for their sum", KEPT, "ranked >= top_p"
    ),
    mistake(
        "top_p is a threshold for single probabilities: it must be one for their sum",
        KEPT,
        "(ranked >= 1 - top_p) | (np.arange(p.shape[-1]) == 0)",
    ),
    mistake(
        "top_p is a fraction of the largest probability (min-p): it is a limit of the sum",
        KEPT,
        "ranked >= top_p * ranked.max(-1, keepdims=True)",
    ),
    mistake(
        "top_p is the share of the tokens that are kept: it must be that of their probabilities",
        KEPT,
        "np.broadcast_to(np.arange(p.shape[-1]) < max(1, int(top_p * p.shape[-1])), p.shape)",
    ),
    mistake(
        "top_p is the share of the tokens that are kept: it must be that of their probabilities",
        KEPT,
        "np.broadcast_to(np.arange(p.shape[-1]) < np.ceil(top_p * p.shape[-1]), p.shape)",
    ),
    mistake(
        "the kept probabilities are divided by top_p: they must be divided by their own sum",
        "ranked / ranked.sum(-1, keepdims=True)",
        "ranked / top_p",
    ),
    mistake(
        "the kept probabilities are divided by the sum of all rows: each row has its own sum",
        "ranked / ranked.sum(-1, keepdims=True)",
        "ranked / ranked.sum()",
    ),
    mistake(
        "a softmax is applied to the kept probabilities: they must be divided by their sum",
        "    result = np",
        "    ranked = np.where(ranked > 0, np.exp(ranked), 0)\n    result = np",
    ),
    mistake(
        "order is used to put the probabilities back: this needs its inverse permutation",
        "    np.put_along_axis(result, order, ranked / ranked.sum(-1, keepdims=True), -1)",
        "    result = np.take_along_axis(ranked / ranked.sum(-1, keepdims=True), order, -1)",
    ),
    mistake(
        "the removed probability is added to the most probable token: the kept ones must be divided by "
        "their sum",
        "    result = np",
        "    ranked[:, 0] += 1 - ranked.sum(-1)\n    result = np",
    ),
    mistake(
        "the removed probability is shared equally among the kept tokens: they must be divided by their sum",
        "    result = np",
        "    ranked += (ranked > 0) * (1 - ranked.sum(-1, keepdims=True)) / (ranked > 0).sum(-1, "
        "keepdims=True)\n"
        "    result = np",
    ),
    mistake(
        "one token too many is kept: the token after the one that reaches top_p belongs to the others",
        KEPT,
        "before - np.concatenate([0 * ranked[:, :1], ranked[:, :-1]], -1) < top_p",
    ),
    mistake("only the most probable token is kept", KEPT, "before <= 0"),
    mistake(
        "the kept tokens are equally probable: keep their probabilities, divided by their sum",
        "    result = np",
        "    ranked = (ranked > 0).astype(p.dtype)\n    result = np",
    ),
)
def keep_nucleus(p: Any, top_p: Any) -> Any:
    """Return the probabilities of top-p sampling."""
    order = np.argsort(-p, axis=-1)
    ranked = np.take_along_axis(p, order, -1)
    before = ranked.cumsum(-1) - ranked
    ranked = np.where(before < top_p, ranked, 0)
    result = np.zeros_like(p)
    np.put_along_axis(result, order, ranked / ranked.sum(-1, keepdims=True), -1)
    return result


@plain(
    "cache-bytes",
    mistake(
        "the factor 2 is missing: keys and values are both stored", "2 * config.n_layers", "config.n_layers"
    ),
    mistake(
        "the bytes are those of as many key heads as query heads: count the heads of keys, each as wide as a "
        "query head",
        KEY_HEADS,
        "config.n_heads",
    ),
    mistake("a head is taken to be d_model wide: the query heads share d_model", WIDTH, "config.d_model"),
    mistake("n_layers is left out: each layer has its own keys and values", " * config.n_layers", ""),
    mistake("batch is left out: each text has its own keys and values", " * batch", ""),
    mistake("itemsize is left out: the result must be in bytes", " * itemsize", ""),
    mistake(
        "itemsize is taken as a number of bits, and it is the number of bytes", "* itemsize", "* itemsize / 8"
    ),
    mistake("the window is ignored: with it, only the last tokens need room", PLACES, "length"),
    mistake(
        "the window is used for shorter texts too: they need room for their own tokens only",
        PLACES,
        "length if config.window is None else config.window",
    ),
    mistake(
        "the larger of length and window is used, and the smaller one is needed", "min(length,", "max(length,"
    ),
    mistake(
        "n_kv_heads None is taken as one head: it means as many heads as there are query heads",
        KEY_HEADS,
        "config.n_kv_heads or 1",
    ),
    mistake(
        "length is squared: the scores of all pairs of tokens are not stored", "* places *", "* places**2 *"
    ),
)
def cache_bytes(config: Any, length: Any, batch: Any, itemsize: Any) -> Any:
    """Return the bytes of the KV cache."""
    heads = config.n_heads if config.n_kv_heads is None else config.n_kv_heads
    width = config.d_model // config.n_heads
    places = length if config.window is None else min(length, config.window)
    return 2 * config.n_layers * heads * width * places * batch * itemsize


@plain(
    "append-in-place",
    mistake(
        "the new positions overwrite the first ones: they come after the positions in use",
        WRITE_K,
        "k_room[:, :, : k.shape[2]] = k",
        WRITE_V,
        "v_room[:, :, : v.shape[2]] = v",
    ),
    mistake(
        "the new positions are at the end of the room: they come directly after the positions in use",
        WRITE_K,
        "k_room[:, :, -k.shape[2] :] = k",
        WRITE_V,
        "v_room[:, :, -v.shape[2] :] = v",
    ),
    mistake(
        "the new positions begin one place too late",
        WRITE_K,
        "k_room[:, :, length + 1 : end + 1] = k",
        WRITE_V,
        "v_room[:, :, length + 1 : end + 1] = v",
    ),
    mistake("the keys are not written into k_room, which stays as it was", WRITE_K, "pass"),
    mistake("the values are not written into v_room, which stays as it was", WRITE_V, "pass"),
    mistake(
        "keys and values are concatenated to new arrays: they must be written into the room",
        WRITE_K,
        "pass",
        WRITE_V,
        "pass",
        VIEWS,
        "np.concatenate([k_room[:, :, :length], k], 2), np.concatenate([v_room[:, :, :length], v], 2)",
    ),
    mistake("copies are returned: return views of the room", VIEWS, VIEWS.replace("]", "].copy()")),
    mistake(
        "the whole room is returned: only the first length + T positions are in use", VIEWS, "k_room, v_room"
    ),
    mistake(
        "only the new positions are returned: the earlier ones are needed too",
        VIEWS,
        "k_room[:, :, length:end], v_room[:, :, length:end]",
    ),
    mistake(
        "only the earlier positions are returned: the new ones are needed too",
        VIEWS,
        "k_room[:, :, :length], v_room[:, :, :length]",
    ),
    mistake("keys and values are exchanged in the result", VIEWS, "v_room[:, :, :end], k_room[:, :, :end]"),
    mistake(
        "only the last new position is written, into all places: k and v may have several positions",
        WRITE_K,
        "k_room[:, :, length:end] = k[:, :, -1:]",
        WRITE_V,
        "v_room[:, :, length:end] = v[:, :, -1:]",
    ),
    mistake(
        "the new keys and values are added to the content of the room, and must replace it",
        WRITE_K,
        "k_room[:, :, length:end] += k",
        WRITE_V,
        "v_room[:, :, length:end] += v",
    ),
    mistake(
        "one new position is assumed, but k and v may have several: the next length is length + T",
        "length + k.shape[2]",
        "length + 1",
        WRITE_K,
        "k_room[:, :, length:end] = k[:, :, :1]",
        WRITE_V,
        "v_room[:, :, length:end] = v[:, :, :1]",
    ),
)
def append(k_room: Any, v_room: Any, length: Any, k: Any, v: Any) -> Any:
    """Return views of all keys and values."""
    end = length + k.shape[2]
    k_room[:, :, length:end] = k
    v_room[:, :, length:end] = v
    return k_room[:, :, :end], v_room[:, :, :end]


@plain(
    "power-law",
    mistake(
        "alpha has the wrong sign: a falling line has a negative slope, and alpha is above 0",
        "-slope",
        "slope",
    ),
    mistake("a is the logarithm of the factor: exp is missing", "np.exp(height)", "height"),
    mistake(
        "the line is fitted to x and y themselves, and not to their logarithms",
        "np.log(x), np.log(y)",
        "x, y",
    ),
    mistake("only y is a logarithm: x must be one as well", "np.log(x)", "x"),
    mistake("only x is a logarithm: y must be one as well", "np.log(y)", "y"),
    mistake("the mean of log x is not subtracted", "logx - logx.mean()", "logx"),
    mistake("a is the mean of y: the line has its height at log x = 0", " - slope * logx.mean()", ""),
    mistake(
        "the line passes through the first and the last point: all points must count",
        "u @ logy / (u @ u)",
        "(logy[-1] - logy[0]) / (logx[-1] - logx[0])",
    ),
)
def fit_power_law(x: Any, y: Any) -> Any:
    """Return a and alpha."""
    logx, logy = np.log(x), np.log(y)
    u = logx - logx.mean()
    slope = u @ logy / (u @ u)
    height = logy.mean() - slope * logx.mean()
    return np.exp(height), -slope
