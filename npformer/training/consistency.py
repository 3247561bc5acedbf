"""R-Drop: the two passes of a sentence, each with its own dropout, learn to predict the same distributions.

Each training step computes its batch twice, as one batch of twice the size. Let p1 and p2 be the
probabilities that the two passes predict for a token, and q its target distribution. The step minimizes the
mean of the cross-entropy over both passes and all T tokens, plus a term that grows with their difference:

    loss = 1 / (2 T) Σ ( CE(q, p1) + CE(q, p2) + α KL(p2 ‖ p1) + α KL(p1 ‖ p2) )

In each divergence, the first distribution is a fixed target, as in deep mutual learning. So the gradient of
the logits of the first pass is

    (p1 - q + α (p1 - p2)) / (2 T) = d1 + α (d1 - d2),   with d1 = (p1 - q) / (2 T) and d2 = (p2 - q) / (2 T),

because both passes have the same q. The gradients d1 and d2 of the cross-entropy therefore suffice, and no
distribution has to be computed again.

Liang et al. do not fix the targets. Their loss CE(q, p1) + CE(q, p2) + α/2 (KL(p1 ‖ p2) + KL(p2 ‖ p1)) has
the same gradient to first order in p1 - p2, apart from the factor 1 / (2 T).

Sources: Liang et al. 2021, "R-Drop: Regularized dropout for neural networks"; Zhang et al. 2018, "Deep mutual
learning".
"""

from typing import Any

import numpy as np

from npformer.backend import Array


def twice(batch: Any) -> Any:
    """Return the batch of all rows of a batch, followed by the same rows again.

    Args:
        batch: A NamedTuple of arrays (B, ...).

    Returns:
        The same NamedTuple with arrays (2B, ...).
    """
    return type(batch)(*(np.concatenate([array, array]) for array in batch))


def add_consistency(dlogits: Array, alpha: float) -> None:
    """Add the gradient of the consistency term to that of the cross-entropy, in place.

    Args:
        dlogits: The gradient of the cross-entropy with respect to the logits of a batch of `twice`, of shape
            (2N, ...): d1 of the first pass, then d2 of the second.
        alpha: The weight α of the term.
    """
    half = len(dlogits) // 2
    d1, d2 = dlogits[:half], dlogits[half:]  # (N, ...)
    difference = d1 - d2  # (p1 - p2) / (2 T)
    difference *= alpha
    d1 += difference
    d2 -= difference
