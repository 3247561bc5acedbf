"""The whole model with its loss as one function of its parameters."""

from npformer.functional.losses import cross_entropy, cross_entropy_backward


class WithLoss:
    """A model and the loss of its logits; what it reads is its subclasses' affair."""

    def __init__(self, model):
        self.model = model

    def named_parameters(self):
        """The model's own names."""
        return self.model.named_parameters()

    def score(self, target_out, logits, cache):
        """The loss of the logits. Returns (loss, cache)."""
        config = self.model.config
        loss, loss_cache = cross_entropy(
            logits, target_out, smoothing=config.label_smoothing, pad_id=config.pad_id
        )
        return loss, (cache, loss_cache)

    def backward(self, dloss, cache):
        """Adds every parameter's gradient."""
        model_cache, loss_cache = cache
        self.model.backward(cross_entropy_backward(dloss, loss_cache), model_cache)


class ModelWithLoss(WithLoss):
    """loss = cross_entropy(model(source, target_in), target_out): the function that training lowers.

    Follows the cache protocol, so that gradcheck(ModelWithLoss(model), source, target_in, target_out)
    checks every parameter of a whole model at once.
    """

    def forward(self, source, target_in, target_out, *, train=False, rng=None):
        """Shapes: integers (B, S), (B, T), (B, T) -> loss (). Returns (loss, cache)."""
        return self.score(target_out, *self.model.forward(source, target_in, train=train, rng=rng))


class LanguageModelWithLoss(WithLoss):
    """loss = cross_entropy(model(ids), target_out): the same for a model of one language."""

    def forward(self, ids, target_out, *, train=False, rng=None):
        """Shapes: integers (B, T), (B, T) -> loss (). Returns (loss, cache)."""
        return self.score(target_out, *self.model.forward(ids, train=train, rng=rng))
