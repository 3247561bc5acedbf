"""Whole models with their loss, for gradient checks."""

from collections.abc import Iterator
from typing import Any

from npformer.backend import Array, Generator
from npformer.functional.losses import CrossEntropyCache, cross_entropy, cross_entropy_backward
from npformer.models.classifier import CLASSIFIERS
from npformer.nn.module import Parameter

LossCache = tuple[Any, CrossEntropyCache, float]  # of model and loss; the factor of the auxiliary loss


class WithLoss:
    """The base class of a model with the loss of its logits. Subclasses define forward."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs (name, Parameter) of the model."""
        return self.model.named_parameters()

    def score(self, target_out: Array, logits: Array, cache: Any) -> tuple[Array, LossCache]:
        """Compute the loss of the logits.

        Args:
            target_out: The right tokens, of shape (B, T).
            logits: The logits, of shape (B, T, V).
            cache: The cache of the model.

        Returns:
            The loss, of shape (), and the cache of this object.
        """
        config = self.model.config
        # the targets of a classifier are classes, of which none is padding
        pad_id = None if getattr(config, "head", None) in CLASSIFIERS else config.pad_id
        loss, loss_cache = cross_entropy(logits, target_out, smoothing=config.label_smoothing, pad_id=pad_id)
        weight = 0.0
        if self.model.has_auxiliary_loss:
            weight = 1 / (target_out != config.pad_id).sum()
            loss = loss + weight * self.model.auxiliary_loss(cache)
        return loss, (cache, loss_cache, weight)

    def backward(self, dloss: float, cache: LossCache) -> None:
        """Accumulate the gradients of all parameters."""
        model_cache, loss_cache, weight = cache
        settings = {"dauxiliary": dloss * weight} if self.model.has_auxiliary_loss else {}
        self.model.backward(cross_entropy_backward(dloss, loss_cache), model_cache, **settings)


class ModelWithLoss(WithLoss):
    """The training loss of a translator: cross_entropy(model(source, target_in), target_out).

    It has forward and backward like a layer, so gradcheck(ModelWithLoss(model), source, target_in,
    target_out) checks all parameters of a model at once.
    """

    def forward(
        self,
        source: Array,
        target_in: Array,
        target_out: Array,
        *,
        train: bool = False,
        rng: Generator | None = None,
    ) -> tuple[Array, LossCache]:
        """Run the model and compute its loss.

        Args:
            source: Token ids, (B, S).
            target_in: The tokens that the decoder reads, (B, T).
            target_out: The tokens that it has to predict, (B, T).
            train: Apply dropout.
            rng: The generator for dropout.

        Returns:
            The loss, of shape (), and the cache.
        """
        return self.score(target_out, *self.model.forward(source, target_in, train=train, rng=rng))


class LanguageModelWithLoss(WithLoss):
    """The training loss of a language model: cross_entropy(model(ids), target_out)."""

    def forward(
        self,
        ids: Array,
        target_out: Array,
        *,
        train: bool = False,
        rng: Generator | None = None,
        **inputs: Any,
    ) -> tuple[Array, LossCache]:
        """Run the model and compute its loss.

        Args:
            ids: The tokens that the model reads, (B, T).
            target_out: The tokens that it has to predict, (B, T).
            train: Apply dropout.
            rng: The generator for dropout.
            inputs: Further inputs of the model, such as segment_ids.

        Returns:
            The loss, of shape (), and the cache.
        """
        return self.score(target_out, *self.model.forward(ids, train=train, rng=rng, **inputs))
