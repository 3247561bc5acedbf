"""Named configurations of recurrent translators, as changes to RecurrentConfig's defaults."""

from typing import Any

SMALL: dict[str, Any] = {
    "d_model": 96,
    "max_length": 64,
    "source_vocab": 10000,
    "target_vocab": 10000,
}

# on the built-in corpus each has as many parameters as the small Transformer, 438,144, within 1 %
PRESETS: dict[str, dict[str, Any]] = {
    "rnn": SMALL | {"attention": "none", "d_hidden": 156},
    "rnn-additive": SMALL | {"attention": "additive", "d_hidden": 120},
    "rnn-global": SMALL | {"attention": "global", "d_hidden": 138},
    "rnn-global-feeding": SMALL | {"attention": "global", "feeding": True, "d_hidden": 124},
    "rnn-local-m": SMALL | {"attention": "local-m", "d_hidden": 138},
    "rnn-local-p": SMALL | {"attention": "local-p", "d_hidden": 134},
}
