"""Wrong windows and positions of local attention."""

from wrong_solutions.wrong import Wrong

DP = "(dbell * bell * away).sum(-1) / sigma**2"
LOCAL = (
    Wrong("gaussian-window-backward", DP, f"-{DP}", "sign is wrong"),
    Wrong("gaussian-window-backward", "/ sigma**2", "/ (2 * sigma**2)", "half|1/2|0.5|counted"),
    Wrong("gaussian-window-backward", DP, "(dbell * bell * away).mean(-1) / sigma**2", "averaged|1/7|mean"),
    Wrong("gaussian-window-backward", DP, "0 * (dbell * bell * away).sum(-1)", "every entry is 0"),
    Wrong("gaussian-window-backward", "dy * bell, dy * weights", "dy, dy * weights", "dy itself|bell"),
    Wrong("predict-position-backward", "dp * lengths", "dp", "factor.*length|length"),
    Wrong("predict-position-backward", "(1 - hidden * hidden)", "1", "factor|missing|left out"),
    Wrong(
        "predict-position-backward", "return dtotal @ weight.T", "return dtotal @ weight", "shape|transposed"
    ),
)
