"""A specimen with a bug: one step from several small batches."""

from npformer.functional import cross_entropy, cross_entropy_backward

PAD = 0


def loss_and_gradients(model, batches):
    """Compute the mean loss over all tokens of the batches and its gradients, as for one large batch.

    batches is a list of pairs (ids, targets), both (B, T) and padded with PAD; the sizes may differ.
    Return the loss. The gradients are those of the model's parameters, which start from 0.
    """
    model.zero_grad()
    total = 0.0
    for ids, targets in batches:
        share = 1 / len(batches)
        logits, cache = model.forward(ids)  # (B, T, V)
        loss, loss_cache = cross_entropy(logits, targets, pad_id=PAD)  # the mean over this batch's tokens
        model.backward(cross_entropy_backward(share, loss_cache), cache)
        total += share * float(loss)
    return total
