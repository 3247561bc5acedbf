"""Bugs in batch norm."""

from planted_bugs.bug import Place

BUGS = {
    "functional/batch_norm.py": {
        "share * (dxhat.sum(rows) + xhat * along)": {
            "batch_norm: the mean has no gradient": "share * (xhat * along)",
            "batch_norm: the variance has no gradient": "share * dxhat.sum(rows)",
            "batch_norm: padding counted": "share.mean() * (dxhat.sum(rows) + xhat * along)",
        },
        "along = (dxhat * xhat).sum(rows)  # (D,)": {
            "batch_norm: the axis of layer norm": "(rows)  # (D,) → (-1, keepdims=True)"
        },
        "dx = rstd * (dxhat": {"batch_norm: rstd left out": "dx = (dxhat"},
        "(dxhat - share *": {"batch_norm: sign": "(dxhat + share *"},
        "return dxhat * rstd, dgain, dbias": {
            "batch_norm: given statistics, rstd left out": "return dxhat, dgain, dbias"
        },
        "dxhat = dy * gain  # (..., D)": {"batch_norm: gain left out": "dxhat = dy"},
    },
    "nn/norm.py": {
        Place("self.gain.accumulate(dgain)", nth=4, of=4): {"BatchNorm: gain": "self.gain.grad = dgain"},
        Place("self.bias.accumulate(dbias)", nth=3, of=3): {"BatchNorm: bias": "self.bias.grad = dbias"},
        "dx, dgain, dbias = batch": {"BatchNorm: gain and bias swapped": "dx, dbias, dgain = batch"},
    },
}
