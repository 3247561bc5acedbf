"""The source lines of activations and gated units."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_ACTIVATIONS = "functional/activations.py"
_ACTIVATION_LESSON = "09_2_activations_and_dead_units.py"
_GATED_LESSON = "23_3_gated_feed_forward_networks.py"

LINES: dict[str, StepLines] = {
    "relu": StepLines(
        Quote(_ACTIVATIONS, "relu", ("y = xp.where(x.real > 0, x, 0)",)),
        Quote(_ACTIVATIONS, "relu_backward", ("return xp.where(y.real > 0, dy, 0)",)),
        _ACTIVATION_LESSON,
        _ACTIVATION_LESSON,
    ),
    "gelu": StepLines(
        Quote(_ACTIVATIONS, "gelu", ("return x * phi, (x, phi)",)),
        Quote(_ACTIVATIONS, "gelu_backward", ("return dy * (phi + x * density)",)),
        _ACTIVATION_LESSON,
        _ACTIVATION_LESSON,
    ),
    "gelu_tanh": StepLines(
        Quote(_ACTIVATIONS, "gelu_tanh", ("return x * (1 + t) / 2, (x, t)",)),
        Quote(_ACTIVATIONS, "gelu_tanh_backward", ("return dy * ((1 + t) + x * (1 - t * t) * dinner) / 2",)),
        _ACTIVATION_LESSON,
        _ACTIVATION_LESSON,
    ),
    "silu": StepLines(
        Quote(_ACTIVATIONS, "swish", ("return x * s, (x, s)",)),
        Quote(_ACTIVATIONS, "swish_backward", ("return dy * (s + x * s * (1 - s))",)),
        _GATED_LESSON,
        _GATED_LESSON,
    ),
    "sigmoid": StepLines(
        Quote(_ACTIVATIONS, "sigmoid", ("y = (1 + array_module(x).tanh(x / 2)) / 2",)),
        Quote(_ACTIVATIONS, "sigmoid_backward", ("return dy * y * (1 - y)",)),
        _GATED_LESSON,
        _GATED_LESSON,
    ),
    "normal_cdf": StepLines(
        Quote(_ACTIVATIONS, "_normal_cdf", ("phi = (1 + erf(x.real / math.sqrt(2))) / 2",)),
        Quote(
            _ACTIVATIONS,
            "gelu_backward",
            ("density = xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)",),
        ),
        _ACTIVATION_LESSON,
        _ACTIVATION_LESSON,
    ),
    "tanh": StepLines(
        Quote(_ACTIVATIONS, "gelu_tanh", ("t = xp.tanh(TANH_SCALE * (x + 0.044715 * x * x * x))",)),
        Quote(
            _ACTIVATIONS,
            "gelu_tanh_backward",
            ("dinner = TANH_SCALE * (1 + 3 * 0.044715 * x * x)",),
        ),
        _ACTIVATION_LESSON,
        _ACTIVATION_LESSON,
    ),
    "gated": StepLines(
        Quote(
            "functional/gated.py",
            "swiglu",
            ("return activated * value, GatedCache(value, activated, activation)",),
        ),
        Quote(
            "functional/gated.py",
            "swiglu_backward",
            ("dactivated, dvalue = dy * cache.value, dy * cache.activated  # (..., F)",),
        ),
        _GATED_LESSON,
        _GATED_LESSON,
    ),
}
