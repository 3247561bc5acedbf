"""Wrong backward passes of latent attention."""

from wrong_solutions.wrong import Wrong

UNIT = "return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length"
RETURN = "return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv"
DV = "dv = weights[..., None] * dy[..., None, :]"

LATENT = (
    Wrong("unit-weights-backward", UNIT, "return dy / length", "sum over that axis is missing|term"),
    Wrong("unit-weights-backward", UNIT, UNIT.removesuffix(" / length"), "length"),
    Wrong("unit-weights-backward", UNIT, UNIT.replace("dy - ", "dy + "), "sign"),
    Wrong("latent-attend-backward", "dw = unit_weights_backward(dweights, unit)", "dw = dweights", "unit"),
    Wrong(
        "latent-attend-backward",
        RETURN,
        RETURN.replace("softmax_backward(dlatent, latent)", "dlatent"),
        "softmax_backward is skipped",
    ),
    Wrong("latent-attend-backward", DV, DV.replace("weights", "latent"), "latent is used where another"),
)
