"""Wrong sums by distance, and wrong gradients of a mixture of states."""

from wrong_solutions.wrong import Wrong

COLLECTED = "x = by_query @ is_at.astype(y.real.dtype)"
TAKEN = "xp.where(before, dweights - dremainder, 0)"

OVERWRITTEN = """
def collect_by_distance(y, distance, n_distances):
    x = np.zeros((*y.shape[:-1], n_distances), y.dtype)
    for t in range(len(distance)):
        x[..., t, distance[t]] = y[..., t, :]
    return x
"""

RELATIVE = (
    Wrong("collect-by-distance", "", OVERWRITTEN, "overwrote"),
    Wrong("collect-by-distance", COLLECTED, f"{COLLECTED} / y.shape[-1]", "averaged|1/6"),
    Wrong(
        "collect-by-distance",
        "x.swapaxes(0, 1).reshape",
        "x.reshape",
        "shape|transposed|swapaxes",
    ),
    Wrong("mix-states-backward", TAKEN, "xp.where(before, dweights, 0)", "dremainder|term|only the first"),
    Wrong("mix-states-backward", TAKEN, TAKEN.replace(" - ", " + "), "sign"),
    Wrong("mix-states-backward", "weights[..., None] * dy", "last[..., None] * dy", "last is used where"),
    Wrong("mix-states-backward", "(states * dy).sum(-1)", "(states * dy).mean(-1)", "averaged|1/3"),
)
