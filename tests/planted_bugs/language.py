"""Bugs in the language models, and in batch norm."""

from planted_bugs.bug import Bug

_BATCH_NORM = "functional/batch_norm.py"
_LAYER = "nn/norm.py"
_MODELS = "models/transformer/language_model.py"

BATCH_NORM = (
    Bug(
        "batch_norm: the mean has no gradient",
        "dropped branch",
        _BATCH_NORM,
        "share * (dxhat.sum(rows) + xhat * along)",
        "share * (xhat * along)",
    ),
    Bug(
        "batch_norm: the variance has no gradient",
        "dropped branch",
        _BATCH_NORM,
        "share * (dxhat.sum(rows) + xhat * along)",
        "share * dxhat.sum(rows)",
    ),
    Bug(
        "batch_norm: padding counted",
        "wrong mask",
        _BATCH_NORM,
        "share * (dxhat.sum(rows) + xhat * along)",
        "share.mean() * (dxhat.sum(rows) + xhat * along)",
    ),
    Bug(
        "batch_norm: the axis of layer norm",
        "missing sum",
        _BATCH_NORM,
        "along = (dxhat * xhat).sum(rows)  # (D,)",
        "along = (dxhat * xhat).sum(-1, keepdims=True)",
    ),
    Bug("batch_norm: rstd left out", "missing scale", _BATCH_NORM, "dx = rstd * (dxhat", "dx = (dxhat"),
    Bug("batch_norm: sign", "sign", _BATCH_NORM, "(dxhat - share *", "(dxhat + share *"),
    Bug(
        "batch_norm: given statistics, rstd left out",
        "missing scale",
        _BATCH_NORM,
        "return dxhat * rstd, dgain, dbias",
        "return dxhat, dgain, dbias",
    ),
    Bug(
        "batch_norm: gain left out",
        "missing scale",
        _BATCH_NORM,
        "dxhat = dy * gain  # (..., D)",
        "dxhat = dy",
    ),
    Bug(
        "BatchNorm: gain",
        "= for +=",
        _LAYER,
        "self.gain.accumulate(dgain)",
        "self.gain.grad = dgain",
        nth=3,
        of=3,
    ),
    Bug(
        "BatchNorm: bias",
        "= for +=",
        _LAYER,
        "self.bias.accumulate(dbias)",
        "self.bias.grad = dbias",
        nth=2,
        of=2,
    ),
    Bug(
        "BatchNorm: gain and bias swapped",
        "swapped",
        _LAYER,
        "dx, dgain, dbias = batch",
        "dx, dbias, dgain = batch",
    ),
)

MODELS = (
    Bug(
        "LanguageModel: encoder skipped",
        "dropped branch",
        _MODELS,
        "dx = self.encoder.backward(dx, cache.encoder)",
        "self.encoder.backward(dx, cache.encoder)",
    ),
    Bug(
        "LanguageModel: embedding gradient from the output only",
        "lost tie",
        _MODELS,
        "self.embedding.backward(dx, cache.embedding)",
        "pass",
    ),
    Bug(
        "LanguageModel: output not tied",
        "lost tie",
        _MODELS,
        "make_output(config, self.embedding.tokens, rng, dtype)",
        "make_output(config, make_embedding(config, config.target_vocab, rng, dtype).tokens, rng, dtype)",
    ),
    Bug(
        "LanguageModel: sign at the embedding",
        "sign",
        _MODELS,
        "self.embedding.backward(dx, cache.embedding)",
        "self.embedding.backward(-dx, cache.embedding)",
    ),
)

LANGUAGE = (*BATCH_NORM, *MODELS)
