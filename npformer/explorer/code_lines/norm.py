"""The source lines of layer norm and RMS norm, residual connections and dropout."""

from npformer.explorer.code_lines.quotes import Quote, StepLines

_NORM = "functional/norm.py"
_PRE_NORM = "models/transformer/pre_norm.py"
_RMS_NORM = "functional/rms_norm.py"
_NORM_LESSON = "08_1_layer_norm.py"
_NORM_GRADIENT = "08_2_the_backward_pass_of_layer_norm.py"
_RESIDUAL_LESSON = "08_3_the_residual_connection.py"
_RMS_NORM_LESSON = "23_1_rms_norm.py"

LINES: dict[str, StepLines] = {
    "layer_norm_statistics": StepLines(
        Quote(
            _NORM,
            "layer_norm",
            (
                "centered = x - x.mean(-1, keepdims=True)  # (..., D)",
                "variance = (centered * centered).mean(-1, keepdims=True)  # (..., 1)",
                "rstd = 1 / xp.sqrt(variance + eps)  # (..., 1)",
            ),
        ),
        Quote(
            _NORM,
            "layer_norm_backward",
            (
                "along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)",
                "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)",
            ),
        ),
        _NORM_LESSON,
        _NORM_GRADIENT,
    ),
    "layer_norm_normalize": StepLines(
        Quote(_NORM, "layer_norm", ("xhat = centered * rstd  # (..., D)",)),
        Quote(
            _NORM,
            "layer_norm_backward",
            (
                "along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)",
                "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)",
            ),
        ),
        _NORM_LESSON,
        _NORM_GRADIENT,
    ),
    "layer_norm_scale": StepLines(
        Quote(_NORM, "layer_norm", ("return gain * xhat + bias, LayerNormCache(xhat, rstd, gain)",)),
        Quote(
            _NORM,
            "layer_norm_backward",
            (
                "dbias = dy.sum(rows)  # (D,)",
                "dgain = (dy * xhat).sum(rows)  # (D,)",
                "dxhat = dy * gain  # (..., D)",
            ),
        ),
        _NORM_LESSON,
        _NORM_GRADIENT,
    ),
    "layer_norm_gain": StepLines(
        Quote(_NORM, "layer_norm", ("return gain * xhat + bias, LayerNormCache(xhat, rstd, gain)",)),
        Quote(
            _NORM,
            "layer_norm_backward",
            ("dgain = (dy * xhat).sum(rows)  # (D,)", "dxhat = dy * gain  # (..., D)"),
        ),
        _NORM_LESSON,
        _NORM_GRADIENT,
    ),
    "rms_norm": StepLines(
        Quote(
            _RMS_NORM,
            "rms_norm",
            (
                "mean_square = (x * x).mean(-1, keepdims=True)  # (..., 1)",
                "rrms = 1 / xp.sqrt(mean_square + eps)  # (..., 1)",
                "xhat = x * rrms  # (..., D)",
            ),
        ),
        Quote(
            _RMS_NORM,
            "rms_norm_backward",
            (
                "along = (dxhat * xhat).mean(-1, keepdims=True)  # (..., 1)",
                "dx = rrms * (dxhat - xhat * along)  # (..., D)",
            ),
        ),
        _RMS_NORM_LESSON,
        _RMS_NORM_LESSON,
    ),
    "rms_norm_scale": StepLines(
        Quote(_RMS_NORM, "rms_norm", ("return gain * xhat, RMSNormCache(xhat, rrms, gain)",)),
        Quote(
            _RMS_NORM,
            "rms_norm_backward",
            ("dgain = (dy * xhat).sum(rows)  # (D,)", "dxhat = dy * gain  # (..., D)"),
        ),
        _RMS_NORM_LESSON,
        _RMS_NORM_LESSON,
    ),
    "residual": StepLines(
        Quote(
            _PRE_NORM,
            "PreNormEncoderLayer.forward",
            ("x = x + h  # the residual connection",),
        ),
        Quote(
            _PRE_NORM,
            "PreNormEncoderLayer.backward",
            ("return dx + self.norm1.backward(dh, cache.norm1)",),
        ),
        _RESIDUAL_LESSON,
        _RESIDUAL_LESSON,
    ),
    "dropout": StepLines(
        Quote("functional/dropout.py", "dropout", ("return x * dropout_mask, dropout_mask",)),
        Quote(
            "functional/dropout.py",
            "dropout_backward",
            ("return dy if dropout_mask is None else dy * dropout_mask",),
        ),
        _RESIDUAL_LESSON,
        _RESIDUAL_LESSON,
    ),
}
