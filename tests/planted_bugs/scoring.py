"""Bugs in the scores and alignments of translations, and in translations that begin with given tokens."""

BUGS = {
    "generation/scoring.py": {
        "(chosen - log_sum_exp(flat)).reshape": {
            "scores: logits for log-probabilities": "(chosen).reshape",
        },
        "shifted_right(target, config.start_id)": {
            "scores: the decoder reads the token that it predicts": "target",
            "scores: another start symbol": "start_id → end_id",
        },
        "log_probs[row, : len(ids)].tolist()": {
            "scores: the end symbol left out": "[row, : len(ids)] → [row, : len(ids) - 1]",
        },
        "layer.mean(1) for layer in layers": {
            "alignment: the first head alone": "layer.mean(1) → layer[:, 0]",
            "alignment: the last layer alone": "in layers → in layers[-1:]",
        },
        "aligned(weights[row, : len(ids), : len(sources[row])])": {
            "alignment: end of the longest source": "aligned(weights[row, : len(ids)])",
        },
        "weights[:-1, :-1].argmax(-1)": {
            "alignment: words aligned with the end symbol": "weights[:-1].argmax(-1)",
            "alignment: the token before": "np.roll(weights, 1, 0)[:-1, :-1].argmax(-1)",
        },
    },
    "generation/beam.py": {
        "is_enough = self.early_stopping is True and": {"early stopping: ignored": "is True → is None"},
    },
    "generation/search.py": {
        "logits[only] = -math.inf": {
            "beginnings: any token may follow": "pass",
        },
        "ids = [start_id, *hypothesis]": {"repetitions: the start symbol not counted": "start_id, → "},
        "for end in range(n, len(ids) + 1)": {
            "repetitions: the last tokens forgotten": "len(ids) + 1 → len(ids)"
        },
    },
    "generation/prefixes.py": {
        "self.ids[sentence, length]": {
            "beginnings: of the first sentences": "self.ids[: len(sentence), length]",
        },
    },
    "generation/greedy.py": {
        "tokens = np.where(forced >= 0, forced, tokens)": {
            "beginnings: sentences without one forced, too": "tokens = forced",
        },
    },
}
