"""MixtureOfExperts: many feed-forward networks, of which each token passes through a few."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, to_numpy
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.experts import (
    BalanceCache,
    CombineCache,
    RouteCache,
    combine,
    combine_backward,
    load_balancing,
    load_balancing_backward,
    route,
    route_backward,
)
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.functional.linear import LinearCache
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.context import INFERENCE, Context
from npformer.nn.feed_forward import FeedForward, GatedFeedForward
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module
from npformer.validation import require_counts


@cache_class
class MixtureCache(NamedTuple):
    """The cache of MixtureOfExperts. The N k choices of the tokens are ordered by their experts."""

    router: LinearCache
    route: RouteCache
    balance: Array  # () the load-balancing loss
    balancing: BalanceCache
    order: Array  # (N k,) the choice that is at each place, as its index in chosen.ravel()
    cuts: list[int]  # the place after the last choice of each expert but the last one
    experts: tuple[Any, ...]  # the cache of each expert, or None if no token has chosen it
    combine: CombineCache


class MixtureOfExperts(Module):
    """A mixture of experts: y = Σ_j weights_j expert_j(x), with the sum over the k experts of the token.

    A linear map without a bias, the router, scores all experts for each token (see functional.experts).
    Shapes: x (..., D) -> y (..., D).

    Args:
        d_model: The width D of input and output.
        d_ff: The width F of the hidden layer of one expert.
        n_experts: The number E of experts.
        top_k: The number k of experts for each token, at most E.
        renormalize: The weights of a token sum to 1. With top_k 1 they would all be 1, and the router would
            not learn.
        activation: The name of the activation. The experts are gated with one of GATED_ACTIVATIONS.
        dropout: The dropout probability of the hidden layers.
        bias: Add biases in the experts.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If top_k is larger than n_experts.

    Source: Shazeer et al. 2017, section 2; Jiang et al. 2024, section 2.1.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        n_experts: int,
        top_k: int = 2,
        *,
        renormalize: bool = True,
        activation: str = "swiglu",
        dropout: float = 0.0,
        bias: bool = False,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_routing(n_experts, top_k)
        require_counts(d_model=d_model)
        rng = default_rng(rng)
        kind = GatedFeedForward if activation in GATED_ACTIVATIONS else FeedForward
        self.router = Linear(d_model, n_experts, bias=False, rng=rng, dtype=dtype)
        settings: dict[str, Any] = {"activation": activation, "dropout": dropout, "bias": bias}
        self.experts = [kind(d_model, d_ff, **settings, rng=rng, dtype=dtype) for _ in range(n_experts)]
        self.top_k, self.renormalize = top_k, renormalize

    def forward(self, x: Array, context: Context = INFERENCE) -> tuple[Array, MixtureCache]:
        """Return y, of shape (..., D), and the cache, whose `balance` is the load-balancing loss."""
        check_floats(x, (..., self.router.weight.shape[0]), "MixtureOfExperts")
        xp, rows = array_module(x), x.reshape(-1, x.shape[-1])  # (N, D)
        logits, router_cache = self.router.forward(rows)  # (N, E)
        weights, route_cache = route(logits, self.top_k, renormalize=self.renormalize)  # (N, k)
        chosen = route_cache.chosen  # (N, k)
        balance, balancing = load_balancing(logits, chosen)

        # the choices of the first expert come first, then those of the second one, and so on
        order = xp.argsort(chosen.ravel(), kind="stable")  # (N k,)
        counts = to_numpy((chosen[..., None] == xp.arange(len(self.experts))).sum((0, 1)))  # (E,)
        cuts = np.cumsum(counts)[:-1].tolist()
        parts = xp.split(rows[order // self.top_k], cuts)  # (M, D) for each expert
        outputs, caches = self._run_experts(parts, context)

        # back into the order of the tokens
        outputs = xp.concatenate(outputs)[xp.argsort(order)]  # (N k, D)
        y, combine_cache = combine(weights, outputs.reshape(*chosen.shape, -1))  # (N, D)
        cache = MixtureCache(
            router_cache, route_cache, balance, balancing, order, cuts, caches, combine_cache
        )
        return y.reshape(x.shape), cache

    def _run_experts(self, parts: list[Array], context: Context) -> tuple[list[Array], tuple[Any, ...]]:
        """Return the output of each expert for its rows (M, D), and its cache, which is None if M is 0."""
        outputs, caches = [], []
        for expert, part in zip(self.experts, parts, strict=True):
            output, cache = expert.forward(part, context) if len(part) else (part, None)
            outputs.append(output)
            caches.append(cache)
        return outputs, tuple(caches)

    def backward(self, dy: Array, cache: MixtureCache, dbalance: float | Array | None = None) -> Array:
        """Return dx, of shape (..., D).

        Args:
            dy: The gradient of y, of shape (..., D).
            cache: The cache of forward.
            dbalance: The gradient of cache.balance. None if the loss does not contain it.
        """
        check_floats(dy, (..., self.router.weight.shape[0]), "MixtureOfExperts.backward", "dy")
        xp, dy_rows = array_module(dy), dy.reshape(-1, dy.shape[-1])  # (N, D)
        check_gradient(dy_rows, cache.router.x.shape, "MixtureOfExperts")
        # y = combine(weights, outputs), outputs in the order of the tokens
        dweights, doutputs = combine_backward(dy_rows, cache.combine)
        # outputs = concatenated[argsort(order)], whose inverse is order
        dparts = xp.split(doutputs.reshape(-1, dy.shape[-1])[cache.order], cache.cuts)
        # concatenated = the outputs of all experts
        drows = [
            expert.backward(dpart, expert_cache) if len(dpart) else dpart
            for expert, dpart, expert_cache in zip(self.experts, dparts, cache.experts, strict=True)
        ]
        # parts = rows[order // k]: each row was read by k experts, so its k gradients are added
        dtokens = xp.concatenate(drows)[xp.argsort(cache.order)].reshape(doutputs.shape).sum(1)  # (N, D)
        # weights = route(logits), balance = load_balancing(logits)
        dlogits = route_backward(dweights, cache.route)  # (N, E)
        if dbalance is not None:
            dlogits = dlogits + load_balancing_backward(dbalance, cache.balancing)
        # logits = router(rows)
        return (dtokens + self.router.backward(dlogits, cache.router)).reshape(dy.shape)


def require_routing(n_experts: int, top_k: int) -> None:
    """Check the numbers of a router.

    Args:
        n_experts: The number E of experts.
        top_k: The number k of experts for each token.

    Raises:
        UserError: If they are no whole numbers of 1 or more, or if top_k is larger than n_experts.
    """
    require_counts(n_experts=n_experts, top_k=top_k)
    if top_k > n_experts:
        raise UserError(f"top_k is {top_k} and n_experts is {n_experts}: choose at most all experts")
