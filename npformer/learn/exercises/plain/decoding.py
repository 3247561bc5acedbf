"""Chapter 14: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import attention, merge_heads
from npformer.learn.exercises.plain.registry import mistake, plain
from npformer.nn.attention import KVCache

CUT = "row[: row.index(end)] if end in row else row"
APPEND = "tokens = np.concatenate([tokens, best[:, None]], 1)"
TOTAL = "so_far[:, None] + log_probs"
ORDER = 'np.argsort(-flat, kind="stable")[:n].tolist()'
JOIN_K, JOIN_V = "np.concatenate([kv_cache.k, k], 2)", "np.concatenate([kv_cache.v, v], 2)"


@plain(
    "greedy",
    mistake("the sentences are not cut at the end symbol", CUT, "row"),
    mistake(
        "the end symbol is in the result, and must be left out", "row.index(end)]", "row.index(end) + 1]"
    ),
    mistake("the forbidden ids 0, 1 and 2 are not excluded", "logits[:, :3] = -np.inf", "pass"),
    mistake(
        "the logits of the forbidden ids are set to 0 instead of -inf",
        "logits[:, :3] = -np.inf",
        "logits[:, :3] = 0",
    ),
    mistake(
        "only padding (id 0) is excluded: the ids 1 and 2 are forbidden too", "logits[:, :3]", "logits[:, :1]"
    ),
    mistake("the ids 0 and 1 are excluded, but not the start symbol (2)", "logits[:, :3]", "logits[:, :2]"),
    mistake("the end symbol is forbidden too, so that no sentence ends", "logits[:, :3]", "logits[:, :4]"),
    mistake("the start symbol is in the result, and must be left out", "tokens[:, 1:]", "tokens"),
    mistake(
        "one token too few is made: max_length is the number of tokens without the start symbol",
        "range(max_length)",
        "range(max_length - 1)",
    ),
    mistake(
        "one token too many is made: the result may have at most max_length tokens",
        "range(max_length)",
        "range(max_length + 1)",
    ),
    mistake(
        "the logits of the first position are used instead of the last position, or the model gets the "
        "start symbol alone",
        "[:, -1]",
        "[:, 0]",
    ),
    mistake(
        "the least probable token is chosen: argmin is used instead of argmax", "argmax(-1)", "argmin(-1)"
    ),
    mistake(
        "the search stops when the first sentence has ended: the others must continue",
        APPEND,
        APPEND + "\n        if (best == end).any():\n            break",
    ),
    mistake(
        "the rest of a sentence is not cut off after the end symbol: it is only replaced by padding",
        CUT,
        "[0 if token == end else token for token in row]",
    ),
    mistake(
        "the end symbols are removed, but not the tokens after the first end symbol",
        CUT,
        "[token for token in row if token != end]",
    ),
    mistake(
        "the sentence is cut before its last token, not at the first end symbol",
        CUT,
        "row[:-1] if end in row else row",
    ),
    mistake(
        "the sentence is cut at the last end symbol instead of the first",
        "row.index(end)]",
        "len(row) - 1 - row[::-1].index(end)]",
    ),
    mistake(
        "the first sentence decides for all: every row gets its token",
        "argmax(-1)",
        "argmax(-1)[:1].repeat(len(source))",
    ),
    mistake(
        "only the newest token is passed to the model: target_in must contain all tokens that were "
        "chosen before",
        "model.forward(source, tokens)",
        "model.forward(source, tokens[:, -1:])",
    ),
    mistake(
        "the newest token is not passed to the model, or the logits of the position before it are used: "
        "those of the last position belong to the next token",
        "model.forward(source, tokens)",
        "model.forward(source, tokens[:, :-1] if tokens.shape[1] > 1 else tokens)",
    ),
    mistake(
        "the forbidden ids are excluded in the first step only: they are forbidden in every step",
        "        logits[:, :3] = -np.inf",
        "        if tokens.shape[1] == 1:\n            logits[:, :3] = -np.inf",
    ),
    mistake(
        "the end symbol is forbidden in the first step: a sentence may be empty",
        "logits[:, :3] = -np.inf",
        "logits[:, : 4 if tokens.shape[1] == 1 else 3] = -np.inf",
    ),
    mistake(
        "only the first sentence decides when the search stops: it must continue until all sentences "
        "have ended",
        APPEND,
        APPEND + "\n        if best[0] == end:\n            break",
    ),
    mistake(
        "the logits of all positions are summed: those of the last position belong to the next token",
        "[:, -1].copy()",
        ".sum(1)",
    ),
    mistake(
        "the second most probable token is chosen: argsort()[-2] instead of the last",
        "logits.argmax(-1)",
        "logits.argsort(-1)[:, -2]",
    ),
    mistake(
        "a token that was chosen before is forbidden: only the ids 0, 1 and 2 are",
        "logits[:, :3] = -np.inf",
        "logits[:, :3] = -np.inf; np.put_along_axis(logits, tokens, -np.inf, 1)",
    ),
    mistake(
        "the sentences are returned in another order: keep the order of the source",
        "for row in tokens[:, 1:].tolist()]",
        "for row in tokens[::-1, 1:].tolist()]",
    ),
    mistake(
        "only the first sentence is returned",
        "for row in tokens[:, 1:].tolist()]",
        "for row in tokens[:1, 1:].tolist()]",
    ),
    mistake(
        "the first token is cut off with the start symbol: only the start symbol must be left out",
        "tokens[:, 1:]",
        "tokens[:, 2:]",
    ),
    mistake(
        "the ids 0 to 2 are excluded only after the choice: they are left out of the result, and the "
        "choice itself "
        "must avoid them",
        "logits[:, :3] = -np.inf",
        "pass",
        CUT,
        f"[token for token in ({CUT}) if token > 2]",
    ),
    mistake(
        "a sentence that does not end is returned empty: it has max_length tokens",
        CUT,
        "row[: row.index(end)] if end in row else []",
    ),
)
def greedy(model: Any, source: Any, *, max_length: Any) -> Any:
    """Return the translations of greedy search."""
    end = model.config.end_id
    tokens = np.full((len(source), 1), model.config.start_id)
    for _ in range(max_length):
        logits = model.forward(source, tokens)[0][:, -1].copy()
        logits[:, :3] = -np.inf
        best = logits.argmax(-1)
        tokens = np.concatenate([tokens, best[:, None]], 1)
    return [row[: row.index(end)] if end in row else row for row in tokens[:, 1:].tolist()]


@plain(
    "best-continuations",
    mistake("so_far is left out: the total is the sum of so_far and log_probs", TOTAL, "log_probs"),
    mistake(
        "the worst continuations come first: the order is that of the lowest total",
        "argsort(-flat",
        "argsort(flat",
    ),
    mistake(
        "the worst continuations come first: the order is that of the lowest total",
        "argsort(-flat",
        "argsort(np.where(flat == -np.inf, np.inf, flat)",
    ),
    mistake(
        "the continuations of the first row come first, each row sorted: compare the totals of all rows",
        ORDER,
        "[r * log_probs.shape[1] + t for r in range(len(total)) "
        'for t in np.argsort(-total[r], kind="stable") if total[r, t] > -np.inf][:n]',
    ),
    mistake(
        "the continuations are not sorted: they are in the order of the rows and tokens",
        ORDER,
        "np.flatnonzero(flat > -np.inf)[:n].tolist()",
    ),
    mistake("row and token are exchanged", "result.append((row, token,", "result.append((token, row,"),
    mistake("totals of -inf are not left out: these tokens are forbidden", "if flat[i] > -np.inf", "if True"),
    mistake(
        "the rows are sorted one by one: the best continuations of all hypotheses must be compared "
        "with each other",
        ORDER,
        "[r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r], "
        'kind="stable")[:n].tolist()][:n]',
    ),
    mistake(
        "n continuations of each row are returned: the best n of all hypotheses together are needed",
        ORDER,
        "[r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r], "
        'kind="stable")[:n].tolist()]',
    ),
    mistake(
        "only the best continuation of each row is kept",
        ORDER,
        "[r * total.shape[1] + int(total[r].argmax()) for r in np.argsort(-total.max(1), "
        'kind="stable").tolist()][:n]',
    ),
    mistake(
        "exp(log_probs) is added to so_far: logarithms and probabilities are mixed",
        TOTAL,
        "so_far[:, None] + np.exp(log_probs)",
    ),
    mistake(
        "so_far and log_probs are multiplied: the sum of the logarithms is needed",
        TOTAL,
        "so_far[:, None] * log_probs",
    ),
    mistake("so_far is subtracted instead of added", TOTAL, "log_probs - so_far[:, None]"),
    mistake(
        "the total of a tuple is only log_probs: so_far is left out in it",
        "flat[i]))",
        "log_probs[row, token]))",
    ),
    mistake(
        "the totals are probabilities: exp is applied to the sum of the logarithms",
        "flat[i]))",
        "np.exp(flat[i])))",
    ),
    mistake("only the best continuation is returned instead of n", "[:n]", "[:1]"),
    mistake("all continuations are returned instead of the best n", "[:n]", ""),
    mistake("n - 1 continuations are returned instead of n", "[:n]", "[: n - 1]"),
    mistake(
        "the index is divided by the number of rows instead of V, the number of tokens",
        "log_probs.shape[1])",
        "log_probs.shape[0])",
    ),
    mistake(
        "of equal totals, or in the list, the lower token comes first instead of the lower row",
        "total.reshape(-1)",
        "total.T.reshape(-1)",
        "row, token = divmod(i, log_probs.shape[1])",
        "token, row = divmod(i, len(so_far))",
    ),
    mistake(
        "n continuations of each row are returned: the best n of all hypotheses together are needed",
        ORDER,
        "sorted((r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r], "
        'kind="stable")[:n].tolist()), key=lambda i: -flat[i])',
    ),
    mistake(
        "so_far is left out of the comparison: the continuations must be ordered by so_far plus log_probs",
        ORDER,
        ORDER.replace("-flat", "-log_probs.reshape(-1)"),
    ),
    mistake(
        "the hypotheses are ordered by so_far, and the tokens within each: compare the totals of all rows",
        ORDER,
        "[r * total.shape[1] + c for r in np.argsort(-so_far, kind='stable').tolist() "
        "for c in np.argsort(-total[r], kind='stable').tolist()][:n]",
    ),
    mistake(
        "only the best hypothesis is continued: compare the continuations of all hypotheses",
        ORDER,
        "[int(so_far.argmax()) * total.shape[1] + c for c in np.argsort(-total[so_far.argmax()], "
        "kind='stable').tolist()][:n]",
    ),
    mistake(
        "only the first hypothesis is continued: compare the continuations of all hypotheses",
        ORDER,
        "np.argsort(-flat[: total.shape[1]], kind='stable')[:n].tolist()",
    ),
    mistake(
        "so_far and log_probs are averaged: the total is their sum",
        TOTAL,
        f"({TOTAL}) / 2",
    ),
    mistake(
        "of equal totals the last row or token comes first: the lower row, then the lower token must "
        "come first",
        ORDER,
        "np.argsort(flat, kind='stable')[::-1][:n].tolist()",
    ),
    mistake(
        "the n best are returned in reverse order: the best one comes first",
        "[:n].tolist()",
        "[:n][::-1].tolist()",
    ),
    mistake(
        "the n best are returned in reverse order: the best one comes first",
        "return result",
        "return sorted(result, key=lambda one: one[2])",
    ),
    mistake(
        "each token occurs only once: several hypotheses may be continued with the same token",
        ORDER,
        "sorted((int(total[:, t].argmax()) * total.shape[1] + t for t in range(total.shape[1])), "
        "key=lambda i: -flat[i])[:n]",
    ),
    mistake("the n + 1 best are returned instead of n", "[:n]", "[: n + 1]"),
    mistake(
        "forbidden tokens take places among the n best: other continuations must take these places",
        ORDER,
        "np.argsort(np.where(np.isinf(flat), np.inf, -flat) * np.where(np.isinf(flat), -1, 1), kind='stable')"
        "[:n].tolist()",
    ),
    mistake(
        "n is divided among the hypotheses: the best n of all hypotheses together are needed",
        ORDER,
        "[r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r], "
        'kind="stable")[: max(1, n // len(total))].tolist()]',
    ),
    mistake(
        "log_probs is normalized once more: use it as it is",
        TOTAL,
        "so_far[:, None] + log_probs - np.log(np.exp(log_probs).sum())",
    ),
)
def best_continuations(so_far: Any, log_probs: Any, n: Any) -> Any:
    """Return the best continuations of the hypotheses of one step of beam search."""
    total = so_far[:, None] + log_probs
    flat = total.reshape(-1)
    order = np.argsort(-flat, kind="stable")[:n].tolist()
    result = []
    for i in order:
        if flat[i] > -np.inf:
            row, token = divmod(i, log_probs.shape[1])
            result.append((row, token, float(flat[i])))
    return result


@plain(
    "length-norm",
    mistake(
        "the parentheses are wrong: only the length is divided by 6", "((5 + length) / 6)", "(5 + length / 6)"
    ),
    mistake(
        "the parentheses are wrong: the power is that of the numerator only, and must be that of the "
        "whole fraction",
        "((5 + length) / 6) ** length_penalty",
        "(5 + length) ** length_penalty / 6",
    ),
    mistake("the power is left out: length_penalty is ignored", " ** length_penalty", ""),
    mistake(
        "the fraction is multiplied by length_penalty, which must be its power",
        "** length_penalty",
        "* length_penalty",
    ),
    mistake("the length itself is used instead of (5 + length) / 6", "((5 + length) / 6)", "length"),
    mistake(
        "the length itself is used instead of (5 + length) / 6, without the power",
        "((5 + length) / 6) ** length_penalty",
        "length",
    ),
    mistake(
        "the power has the wrong sign: the score is divided by this number later",
        "** length_penalty",
        "** -length_penalty",
    ),
    mistake("it is 1 for every length: the length is ignored", "((5 + length) / 6) ** length_penalty", "1.0"),
    mistake("5 is left out", "(5 + length)", "length"),
    mistake("the divisor 6 is left out", " / 6", ""),
    mistake(
        "a number is one too large: 6 + length is used instead of 5 + length", "5 + length", "6 + length"
    ),
    mistake("5 and 6 are exchanged", "5 + length) / 6", "6 + length) / 5"),
    mistake("the divisor is 5 instead of 6", "/ 6", "/ 5"),
    mistake("it is multiplied by 6 instead of divided", "/ 6", "* 6"),
    mistake(
        "the parentheses are wrong: the power is that of 6 only, and must be that of the whole fraction",
        "((5 + length) / 6) ** length_penalty",
        "(5 + length) / 6**length_penalty",
    ),
    mistake(
        "the parentheses are wrong: the power is that of length / 6 only, and must be that of the whole "
        "fraction",
        "((5 + length) / 6) ** length_penalty",
        "5 + (length / 6) ** length_penalty",
    ),
    mistake(
        "the parentheses are wrong: the power is that of length only, and must be that of the whole fraction",
        "((5 + length) / 6) ** length_penalty",
        "(5 + length**length_penalty) / 6",
    ),
    mistake(
        "the fraction and length_penalty are exchanged in the power",
        "((5 + length) / 6) ** length_penalty",
        "length_penalty ** ((5 + length) / 6)",
    ),
    mistake(
        "the power is 1 / length_penalty: it is length_penalty",
        "** length_penalty",
        "** (1 / length_penalty)",
    ),
    mistake("the power is fixed at 0.5: length_penalty is ignored", "** length_penalty", "** 0.5"),
    mistake("the power is fixed at 0.6: length_penalty is ignored", "** length_penalty", "** 0.6"),
    mistake("the power is fixed at 2: length_penalty is ignored", "** length_penalty", "** 2"),
    mistake(
        "length_penalty is added to the fraction: it must be its power",
        "((5 + length) / 6) ** length_penalty",
        "(5 + length) / 6 + length_penalty",
    ),
    mistake("the divisor is 6 + length: it is 6", "/ 6)", "/ (6 + length))"),
    mistake("5 is multiplied by the length: it must be added", "(5 + length)", "(5 * length)"),
)
def length_norm(length: Any, length_penalty: Any) -> Any:
    """Return the length normalization of beam search."""
    return ((5 + length) / 6) ** length_penalty


@plain(
    "cached-step",
    mistake(
        "the new key and value come first: the order must be that of the positions",
        JOIN_K,
        "np.concatenate([k, kv_cache.k], 2)",
        JOIN_V,
        "np.concatenate([v, kv_cache.v], 2)",
    ),
    mistake(
        "the new key comes first: the order must be that of the positions",
        JOIN_K,
        "np.concatenate([k, kv_cache.k], 2)",
    ),
    mistake(
        "the new value comes first: the order must be that of the positions",
        JOIN_V,
        "np.concatenate([v, kv_cache.v], 2)",
    ),
    mistake("the keys are used in place of the values", JOIN_V, "k"),
    mistake(
        "the earlier keys are used in place of the earlier values",
        JOIN_V,
        "np.concatenate([kv_cache.k, v], 2)",
    ),
    mistake(
        "the earlier values are used in place of the earlier keys",
        JOIN_K,
        "np.concatenate([kv_cache.v, k], 2)",
    ),
    mistake("keys and values are exchanged in the KVCache", "KVCache(k, v)", "KVCache(v, k)"),
    mistake(
        "the KVCache holds only the new key and value: those of all positions are needed",
        "KVCache(k, v)",
        "KVCache(k[:, :, -1:], v[:, :, -1:])",
    ),
    mistake(
        "layer.output.forward is left out", "layer.output.forward(merge_heads(z))", "merge_heads(z), None"
    ),
    mistake(
        "attention sees only the new position: it needs the keys and values of the earlier positions "
        "from the cache too",
        "attention(q, k, v)",
        "attention(q, k[:, :, -1:], v[:, :, -1:])",
    ),
    mistake(
        "attention sees only the earlier positions: the new key and value must be appended before",
        "attention(q, k, v)",
        "attention(q, k, v) if kv_cache is None else attention(q, kv_cache.k, kv_cache.v)",
    ),
    mistake(
        "the cache is not extended: the new key and value are not appended",
        JOIN_K,
        "kv_cache.k",
        JOIN_V,
        "kv_cache.v",
    ),
    mistake(
        "the keys are used in place of the values in attention", "attention(q, k, v)", "attention(q, k, k)"
    ),
    mistake(
        "the new key is used in place of the query", "attention(q, k, v)", "attention(k[:, :, -1:], k, v)"
    ),
    mistake(
        "the KVCache is the old one: it must contain the new key and value too",
        "return y, KVCache(k, v)",
        "return y, KVCache(k, v) if kv_cache is None else kv_cache",
    ),
    mistake(
        "the new key and value are added to the earlier ones: they must be appended as a new position",
        JOIN_K,
        "kv_cache.k + k",
        JOIN_V,
        "kv_cache.v + v",
    ),
    mistake(
        "the new key and value are appended to themselves: append them to those of the earlier positions",
        JOIN_K,
        "np.concatenate([k, k], 2)",
        JOIN_V,
        "np.concatenate([v, v], 2)",
    ),
    mistake(
        "q is divided by sqrt(K) once more: attention contains this division",
        "attention(q, k, v)",
        "attention(q / np.sqrt(q.shape[-1]), k, v)",
    ),
    mistake(
        "x is added to y: there is no residual connection in the attention itself",
        "return y, KVCache",
        "return x + y, KVCache",
    ),
    mistake(
        "only the key and value of the position before are kept: those of all earlier positions are needed",
        "np.concatenate([kv_cache.k, k], 2)",
        "np.concatenate([kv_cache.k[:, :, -1:], k], 2)",
        "np.concatenate([kv_cache.v, v], 2)",
        "np.concatenate([kv_cache.v[:, :, -1:], v], 2)",
    ),
    mistake(
        "keys and values are exchanged in attention: the order is q, k, v",
        "attention(q, k, v)",
        "attention(q, v, k)",
    ),
    mistake(
        "keys and values are exchanged everywhere: project returns q, k and v in this order",
        "(q, k, v), _ = layer",
        "(q, v, k), _ = layer",
    ),
    mistake(
        "query and key are exchanged: project returns q, k and v in this order",
        "(q, k, v), _ = layer",
        "(k, q, v), _ = layer",
    ),
    mistake(
        "the earlier positions are not in the attention, but they are in the KVCache: use k and v after "
        "they are "
        "extended",
        "    z, _ = attention(q, k, v)",
        "    z, _ = attention(q, k[:, :, :1], v[:, :, :1])",
    ),
    mistake(
        "the earlier positions are ignored: kv_cache is not used",
        "if kv_cache is not None",
        "if False",
    ),
    mistake(
        "the new key and value are appended twice",
        JOIN_K,
        "np.concatenate([kv_cache.k, k, k], 2)",
        JOIN_V,
        "np.concatenate([kv_cache.v, v, v], 2)",
    ),
)
def decode_step(layer: Any, x: Any, kv_cache: Any = None) -> Any:
    """Return the output at the newest position, and the extended keys and values."""
    (q, k, v), _ = layer.project(x, x, x)
    if kv_cache is not None:
        k = np.concatenate([kv_cache.k, k], 2)
        v = np.concatenate([kv_cache.v, v], 2)
    z, _ = attention(q, k, v)
    y, _ = layer.output.forward(merge_heads(z))
    return y, KVCache(k, v)
