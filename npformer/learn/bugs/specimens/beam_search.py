"""A specimen with a bug: beam search."""

END = 0


def beam_search(next_log_probs, *, beam=4, max_length=10):
    """Return the most probable sentence that the search finds, and its log-probability.

    Each step keeps the `beam` most probable continuations of all unfinished sentences. Those that end are
    finished, and the others are continued, up to max_length tokens.
    next_log_probs(tokens) gives log p(next | tokens). Shapes: a list of ids -> (V,).
    Return (ids without END, log p(ids, END)).
    """
    live: list[tuple[list[int], float]] = [([], 0.0)]  # pairs (tokens, log p)
    finished = []
    for step in range(max_length + 1):
        continued = []
        for tokens, so_far in live:
            log_probs = next_log_probs(tokens)  # (V,)
            allowed = [END] if step == max_length else range(len(log_probs))
            continued += [([*tokens, token], so_far + float(log_probs[token])) for token in allowed]
        continued.sort(key=lambda pair: -pair[1])
        kept = continued[:beam]
        finished += [pair for pair in kept if pair[0][-1] == END]
        live = [pair for pair in kept if pair[0][-1] != END]
        if finished or not live:
            break
    tokens, log_prob = max(finished, key=lambda pair: pair[1])
    return tokens[:-1], log_prob
