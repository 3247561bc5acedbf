"""Check under mpirun that the summed gradients of all ranks equal those of a single rank, in float64."""

import numpy as np
from small_batches import make_batches, make_model

from npformer.training.ranks import ranks_of_launch
from npformer.training.step import loss_and_gradients
from npformer.training.workers import Workers

batches = make_batches(6, 3)
alone, shared = make_model(), make_model()
expected = loss_and_gradients(alone, batches)
with ranks_of_launch() as ranks:
    found = loss_and_gradients(shared, batches, workers=Workers(shared, 1, ranks))
    assert ranks.size == 2
    assert found[1] == expected[1]
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    np.testing.assert_allclose(shared.grads, alone.grads, rtol=1e-12, atol=1e-14)
    ranks.require_same("gradients", shared.grads)
if ranks.first:
    print("the same")
