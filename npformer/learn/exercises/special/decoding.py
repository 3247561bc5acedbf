"""Chapter 14: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== greedy
row[: row.index(end)] if end in row else row => row ## the sentences are not cut at the end symbol
=> [0 if token == end else token for token in row]
    ## the rest of a sentence is not cut off after the end symbol: it is only replaced by padding
=> [token for token in row if token != end]
    ## the end symbols are removed, but not the tokens after the first end symbol
=> row[:-1] if end in row else row ## the sentence is cut before its last token, not at the first end symbol
=> row[: row.index(end)] if end in row else []
    ## a sentence that does not end is returned empty: it has max_length tokens
row.index(end)] => row.index(end) + 1] ## the end symbol is in the result, and must be left out
=> len(row) - 1 - row[::-1].index(end)] ## the sentence is cut at the last end symbol instead of the first
logits[:, :3] = -np.inf => pass ## the forbidden ids 0, 1 and 2 are not excluded
=> logits[:, :3] = 0 ## the logits of the forbidden ids are set to 0 instead of -inf
=> logits[:, : 4 if tokens.shape[1] == 1 else 3] = -np.inf
    ## the end symbol is forbidden in the first step: a sentence may be empty
=> logits[:, :3] = -np.inf; np.put_along_axis(logits, tokens, -np.inf, 1)
    ## a token that was chosen before is forbidden: only the ids 0, 1 and 2 are
=> pass && row[: row.index(end)] if end in row else row => [token for token in (row[: row.index(end)] if end
    in row else row) if token > 2] ## the ids 0 to 2 are excluded only after the choice: they are left out of
    the result, and the choice itself must avoid them
logits[:, :3] => logits[:, :1] ## only padding (id 0) is excluded: the ids 1 and 2 are forbidden too
=> logits[:, :2] ## the ids 0 and 1 are excluded, but not the start symbol (2)
=> logits[:, :4] ## the end symbol is forbidden too, so that no sentence ends
tokens[:, 1:] => tokens ## the start symbol is in the result, and must be left out
=> tokens[:, 2:] ## the first token is cut off with the start symbol: only the start symbol must be left out
range(max_length) => range(max_length - 1)
    ## one token too few is made: max_length is the number of tokens without the start symbol
=> range(max_length + 1) ## one token too many is made: the result may have at most max_length tokens
[:, -1] => [:, 0] ## the logits of the first position are used instead of the last position, or the model gets
    the start symbol alone
argmax(-1) => argmin(-1) ## the least probable token is chosen: argmin is used instead of argmax
=> argmax(-1)[:1].repeat(len(source)) ## the first sentence decides for all: every row gets its token
tokens = np.concatenate([tokens, best[:, None]], 1) => tokens = np.concatenate([tokens, best[:, None]],
    1)\n        if (best == end).any():\n            break
    ## the search stops when the first sentence has ended: the others must continue
=> tokens = np.concatenate([tokens, best[:, None]], 1)\n        if best[0] == end:\n            break
    ## only the first sentence decides when the search stops: it must continue until all sentences have ended
model.forward(source, tokens) => model.forward(source, tokens[:, -1:])
    ## only the newest token is passed to the model: target_in must contain all tokens that were chosen before
=> model.forward(source, tokens[:, :-1] if tokens.shape[1] > 1 else tokens)
    ## the newest token is not passed to the model, or the logits of the position before it are used: those of
    the last position belong to the next token
logits[:, :3] = -np.inf => if tokens.shape[1] == 1:\n            logits[:, :3] = -np.inf
    ## the forbidden ids are excluded in the first step only: they are forbidden in every step
[:, -1].copy() => .sum(1)
    ## the logits of all positions are summed: those of the last position belong to the next token
logits.argmax(-1) => logits.argsort(-1)[:, -2]
    ## the second most probable token is chosen: argsort()[-2] instead of the last
=== best-continuations
argsort(-flat => argsort(flat ## the worst continuations come first: the order is that of the lowest total
=> argsort(np.where(flat == -np.inf, np.inf, flat)
    ## the worst continuations come first: the order is that of the lowest total
np.argsort(-flat, kind="stable")[:n].tolist() => [r * log_probs.shape[1] + t for r in range(len(total)) for t
    in np.argsort(-total[r], kind="stable") if total[r, t] > -np.inf][:n]
    ## the continuations of the first row come first, each row sorted: compare the totals of all rows
=> np.flatnonzero(flat > -np.inf)[:n].tolist()
    ## the continuations are not sorted: they are in the order of the rows and tokens
=> [r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r],
    kind="stable")[:n].tolist()][:n] ## the rows are sorted one by one: the best continuations of all
    hypotheses must be compared with each other
=> [r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r],
    kind="stable")[:n].tolist()]
    ## n continuations of each row are returned: the best n of all hypotheses together are needed
=> [r * total.shape[1] + int(total[r].argmax()) for r in np.argsort(-total.max(1),
    kind="stable").tolist()][:n] ## only the best continuation of each row is kept
=> sorted((r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r],
    kind="stable")[:n].tolist()), key=lambda i: -flat[i])
    ## n continuations of each row are returned: the best n of all hypotheses together are needed
=> np.argsort(-log_probs.reshape(-1), kind="stable")[:n].tolist()
    ## so_far is left out of the comparison: the continuations must be ordered by so_far plus log_probs
=> [r * total.shape[1] + c for r in np.argsort(-so_far, kind='stable').tolist() for c in np.argsort(-total[r],
    kind='stable').tolist()][:n]
    ## the hypotheses are ordered by so_far, and the tokens within each: compare the totals of all rows
=> [int(so_far.argmax()) * total.shape[1] + c for c in np.argsort(-total[so_far.argmax()],
    kind='stable').tolist()][:n]
    ## only the best hypothesis is continued: compare the continuations of all hypotheses
=> np.argsort(flat, kind='stable')[::-1][:n].tolist()
    ## of equal totals the last row or token comes first: the lower row, then the lower token must come first
=> sorted((int(total[:, t].argmax()) * total.shape[1] + t for t in range(total.shape[1])), key=lambda i:
    -flat[i])[:n] ## each token occurs only once: several hypotheses may be continued with the same token
=> np.argsort(np.where(np.isinf(flat), np.inf, -flat) * np.where(np.isinf(flat), -1, 1),
    kind='stable')[:n].tolist()
    ## forbidden tokens take places among the n best: other continuations must take these places
=> [r * total.shape[1] + c for r in range(len(total)) for c in np.argsort(-total[r], kind="stable")[: max(1, n
    // len(total))].tolist()]
    ## n is divided among the hypotheses: the best n of all hypotheses together are needed
if flat[i] > -np.inf => if True ## totals of -inf are not left out: these tokens are forbidden
flat[i])) => log_probs[row, token])) ## the total of a tuple is only log_probs: so_far is left out in it
[:n] => [:1] ## only the best continuation is returned instead of n
log_probs.shape[1]) => log_probs.shape[0])
    ## the index is divided by the number of rows instead of V, the number of tokens
total.reshape(-1) => total.T.reshape(-1) && row, token = divmod(i, log_probs.shape[1]) => token, row =
    divmod(i, len(so_far))
    ## of equal totals, or in the list, the lower token comes first instead of the lower row
return result => return sorted(result, key=lambda one: one[2])
    ## the n best are returned in reverse order: the best one comes first
so_far[:, None] + log_probs => so_far[:, None] + log_probs - np.log(np.exp(log_probs).sum())
    ## log_probs is normalized once more: use it as it is
=== length-norm
((5 + length) / 6) ** length_penalty => (5 + length) ** length_penalty / 6 ## the parentheses are wrong: the
    power is that of the numerator only, and must be that of the whole fraction
=> length ## the length itself is used instead of (5 + length) / 6, without the power
=> 1.0 ## it is 1 for every length: the length is ignored
=> (5 + length) / 6**length_penalty
    ## the parentheses are wrong: the power is that of 6 only, and must be that of the whole fraction
=> 5 + (length / 6) ** length_penalty
    ## the parentheses are wrong: the power is that of length / 6 only, and must be that of the whole fraction
=> (5 + length**length_penalty) / 6
    ## the parentheses are wrong: the power is that of length only, and must be that of the whole fraction
=> length_penalty ** ((5 + length) / 6) ## the fraction and length_penalty are exchanged in the power
=> (5 + length) / 6 + length_penalty ## length_penalty is added to the fraction: it must be its power
** length_penalty => * length_penalty ## the fraction is multiplied by length_penalty, which must be its power
=> ** -length_penalty ## the power has the wrong sign: the score is divided by this number later
=> ** (1 / length_penalty) ## the power is 1 / length_penalty: it is length_penalty
=> **NUMBER ## the power is fixed at NUMBER: length_penalty is ignored
((5 + length) / 6) => length ## the length itself is used instead of (5 + length) / 6
5 + length) / 6 => 6 + length) / 5 ## 5 and 6 are exchanged
/ 6) => / (6 + length)) ## the divisor is 6 + length: it is 6
=== cached-step
np.concatenate([kv_cache.k, k], 2) => np.concatenate([k, kv_cache.k], 2) && np.concatenate([kv_cache.v, v], 2)
    => np.concatenate([v, kv_cache.v], 2)
    ## the new key and value come first: the order must be that of the positions
=> np.concatenate([kv_cache.v, k], 2) ## the earlier values are used in place of the earlier keys
=> np.concatenate([k, k], 2) && np.concatenate([kv_cache.v, v], 2) => np.concatenate([v, v], 2)
    ## the new key and value are appended to themselves: append them to those of the earlier positions
=> np.concatenate([kv_cache.k[:, :, -1:], k], 2) && np.concatenate([kv_cache.v, v], 2) =>
    np.concatenate([kv_cache.v[:, :, -1:], v], 2)
    ## only the key and value of the position before are kept: those of all earlier positions are needed
=> np.concatenate([kv_cache.k, k, k], 2) && np.concatenate([kv_cache.v, v], 2) => np.concatenate([kv_cache.v,
    v, v], 2) ## the new key and value are appended twice
np.concatenate([kv_cache.v, v], 2) => np.concatenate([v, kv_cache.v], 2)
    ## the new value comes first: the order must be that of the positions
=> k ## the keys are used in place of the values
=> np.concatenate([kv_cache.k, v], 2) ## the earlier keys are used in place of the earlier values
KVCache(k, v) => KVCache(k[:, :, -1:], v[:, :, -1:])
    ## the KVCache holds only the new key and value: those of all positions are needed
F.attention(q, k, v) => F.attention(q, k[:, :, -1:], v[:, :, -1:]) ## attention sees only the new position: it
    needs the keys and values of the earlier positions from the cache too
=> F.attention(q, k, v) if kv_cache is None else F.attention(q, kv_cache.k, kv_cache.v)
    ## attention sees only the earlier positions: the new key and value must be appended before
=> F.attention(k[:, :, -1:], k, v) ## the new key is used in place of the query
=> F.attention(q / np.sqrt(q.shape[-1]), k, v)
    ## q is divided by sqrt(K) once more: attention contains this division
return y, KVCache(k, v) => return y, KVCache(k, v) if kv_cache is None else kv_cache
    ## the KVCache is the old one: it must contain the new key and value too
z, _ = F.attention(q, k, v) => z, _ = F.attention(q, k[:, :, :1], v[:, :, :1])
    ## the earlier positions are not in the attention, but they are in the KVCache: use k and v after they are
    extended
"""
