"""A specimen with a bug: beam search."""

END = 0


def beam_search(next_log_probs, *, beam=4, max_length=10):
    """The most probable sentence that the search finds, and its log-probability.

    At each step the `beam` most probable continuations of all unfinished sentences are kept; those that
    end are finished, and the others go on, up to max_length words.
    next_log_probs(words) gives log p(next | words). Shapes: a list of ids -> (V,).
    Returns (ids without END, log p(ids, END)).
    """
    live: list[tuple[list[int], float]] = [([], 0.0)]  # pairs (words, log p)
    finished = []
    for step in range(max_length + 1):
        continued = []
        for words, so_far in live:
            log_probs = next_log_probs(words)  # (V,)
            allowed = [END] if step == max_length else range(len(log_probs))
            continued += [([*words, word], so_far + float(log_probs[word])) for word in allowed]
        continued.sort(key=lambda pair: -pair[1])
        kept = continued[:beam]
        finished += [pair for pair in kept if pair[0][-1] == END]
        live = [pair for pair in kept if pair[0][-1] != END]
        if finished or not live:
            break
    words, log_prob = max(finished, key=lambda pair: pair[1])
    return words[:-1], log_prob
