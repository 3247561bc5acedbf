"""Bugs in the models of one language, and in batch norm."""

from planted_bugs.bug import Bug

_BATCH_NORM = "functional/batch_norm.py"
_LAYER = "layers/batch_norm.py"
_MODELS = "transformer/language_models.py"

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
        "batch_norm: layer norm's axis",
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
    Bug("BatchNorm: gain", "= for +=", _LAYER, "self.gain.grad += dgain", "self.gain.grad = dgain"),
    Bug("BatchNorm: bias", "= for +=", _LAYER, "self.bias.grad += dbias", "self.bias.grad = dbias"),
    Bug("BatchNorm: swapped", "swapped", _LAYER, "dx, dgain, dbias = batch", "dx, dbias, dgain = batch"),
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
        "LanguageModel: the words learn at the output alone",
        "lost tie",
        _MODELS,
        "self.words.backward(dx, cache.words)",
        "pass",
    ),
    Bug(
        "LanguageModel: output not tied",
        "lost tie",
        _MODELS,
        "make_output(config, self.words.words, rng, dtype)",
        "make_output(config, make_embedding(config, config.target_vocab, rng, dtype).words, rng, dtype)",
    ),
    Bug(
        "LanguageModel: sign at the words",
        "sign",
        _MODELS,
        "self.words.backward(dx, cache.words)",
        "self.words.backward(-dx, cache.words)",
    ),
)

LANGUAGE = (*BATCH_NORM, *MODELS)
