"""The whole model with its loss as one function of its parameters."""

from npformer.functional.losses import cross_entropy, cross_entropy_backward


class ModelWithLoss:
    """loss = cross_entropy(model(source, target_in), target_out): the function that training lowers.

    Follows the cache protocol, so that gradcheck(ModelWithLoss(model), source, target_in, target_out)
    checks every parameter of a whole model at once.
    """

    def __init__(self, model):
        self.model = model

    def named_parameters(self):
        """The model's own names."""
        return self.model.named_parameters()

    def forward(self, source, target_in, target_out, *, train=False, rng=None):
        """Shapes: integers (B, S), (B, T), (B, T) -> loss (). Returns (loss, cache)."""
        config = self.model.config
        logits, cache = self.model.forward(source, target_in, train=train, rng=rng)
        loss, loss_cache = cross_entropy(
            logits, target_out, smoothing=config.label_smoothing, pad_id=config.pad_id
        )
        return loss, (cache, loss_cache)

    def backward(self, dloss, cache):
        """Adds every parameter's gradient."""
        model_cache, loss_cache = cache
        self.model.backward(cross_entropy_backward(dloss, loss_cache), model_cache)
