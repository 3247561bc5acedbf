"""Bugs in batch norm."""

from planted_bugs.bug import Place

BUGS = {
    "functional/batch_norm.py": {
        "share * (dxhat.sum(rows) + xhat * along)": [
            ("batch_norm: the mean has no gradient", "dropped branch", "share * (xhat * along)"),
            ("batch_norm: the variance has no gradient", "dropped branch", "share * dxhat.sum(rows)"),
            ("batch_norm: padding counted", "wrong mask", "share.mean() * (dxhat.sum(rows) + xhat * along)"),
        ],
        "along = (dxhat * xhat).sum(rows)  # (D,)": [
            ("batch_norm: the axis of layer norm", "missing sum", "(rows)  # (D,) → (-1, keepdims=True)"),
        ],
        "dx = rstd * (dxhat": [("batch_norm: rstd left out", "missing scale", "dx = (dxhat")],
        "(dxhat - share *": [("batch_norm: sign", "sign", "(dxhat + share *")],
        "return dxhat * rstd, dgain, dbias": [
            ("batch_norm: given statistics, rstd left out", "missing scale", "return dxhat, dgain, dbias"),
        ],
        "dxhat = dy * gain  # (..., D)": [("batch_norm: gain left out", "missing scale", "dxhat = dy")],
    },
    "nn/norm.py": {
        Place("self.gain.accumulate(dgain)", nth=4, of=4): [
            ("BatchNorm: gain", "= for +=", "self.gain.grad = dgain"),
        ],
        Place("self.bias.accumulate(dbias)", nth=3, of=3): [
            ("BatchNorm: bias", "= for +=", "self.bias.grad = dbias"),
        ],
        "dx, dgain, dbias = batch": [
            ("BatchNorm: gain and bias swapped", "swapped", "dx, dbias, dgain = batch"),
        ],
    },
}
