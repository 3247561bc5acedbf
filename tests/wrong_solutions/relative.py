"""Wrong ways to collect by distance, and wrong gradients of a mixture of states."""

from wrong_solutions.wrong import Wrong

COLLECTED = "np.where(distance == r, y, 0).sum(-1)"
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
    Wrong("collect-by-distance", COLLECTED, COLLECTED.replace("sum", "mean"), "averaged|1/6"),
    Wrong("collect-by-distance", "np.stack(collected, -1)", "np.stack(collected, 0)", "shape|transposed"),
    Wrong("mix-states-backward", TAKEN, "xp.where(before, dweights, 0)", "dremainder|term|only the first"),
    Wrong("mix-states-backward", TAKEN, TAKEN.replace(" - ", " + "), "sign"),
    Wrong("mix-states-backward", "weights[..., None] * dy", "last[..., None] * dy", "last stands where"),
    Wrong("mix-states-backward", "(states * dy).sum(-1)", "(states * dy).mean(-1)", "averaged|1/3"),
)
