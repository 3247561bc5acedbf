"""The Universal Transformer: one layer that is repeated. The number of steps can differ between tokens.

UniversalEncoder and UniversalDecoder are its two stacks, and UniversalTransformer is the translator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import Registry, UserError
from npformer.functional.activations import sigmoid, sigmoid_backward
from npformer.functional.caches import cache_class
from npformer.functional.halting import MixCache, mix_states, mix_states_backward
from npformer.functional.ids import check_pairs
from npformer.functional.linear import LinearCache
from npformer.functional.masks import check_token_mask
from npformer.functional.norm import LayerNormCache
from npformer.functional.positions import LAYOUTS
from npformer.functional.recurrent import masked_update, masked_update_backward
from npformer.models.settings import registry
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.model import Transformer, TransformerCache, make_embedding, make_output
from npformer.models.transformer.stacks import make_decoder_layer, make_encoder_layer, make_final_norm
from npformer.nn import FixedPositions, Linear
from npformer.nn.context import INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.module import Module
from npformer.validation import is_number

MOST_STEPS = 1000  # of a layer; each step has a vector in a table, which is not in the checkpoint

# for the built-in corpus. d_model and d_ff are chosen so that the model has as many parameters as the "small"
# Transformer, within 1 %: the one layer of each stack is wider. So a step takes as long as all layers of that
# Transformer. With 4 steps the decoder took 3.7 on average after 300 training steps of 115 ms, and the
# validation loss was no lower (0.31) than with 2 (0.29, 65 ms)
ARCHITECTURES = registry(
    "architecture",
    {
        "universal": {
            "norm": "pre",
            "final_norm": True,
            "tied": "output",
            "d_model": 128,
            "d_ff": 300,
            "n_heads": 4,
            "n_layers": 2,
            "max_length": 64,
            "source_vocab": 10000,
            "target_vocab": 10000,
        },
    },
)


@dataclass(frozen=True)
class UniversalConfig(TransformerConfig):
    """The settings of a UniversalTransformer: those of a Transformer, and those of halting.

    n_layers is the largest number of steps of each layer. The defaults of the settings of halting are those
    of tensor2tensor.

    Raises:
        UserError: If a setting is impossible, or if two settings contradict each other.
    """

    named: ClassVar[Registry[dict[str, Any]]] = ARCHITECTURES

    halting: bool = True  # stop each position separately; otherwise every position takes n_layers steps
    halting_epsilon: float = 0.01  # a position stops when its probabilities sum to at least 1 - this
    halting_bias: float = 1.0  # the initial bias of the halting unit; positions stop earlier if it is larger
    ponder_weight: float = 0.01  # the factor of the ponder cost in the loss

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self, self.halting_epsilon, self.halting_bias)
        if self.decoder_layers is not None:
            raise UserError(
                "a universal transformer repeats one layer in each stack: leave out decoder_layers"
            )
        if self.n_layers > MOST_STEPS:
            raise UserError(f"n_layers is {self.n_layers:,} steps: give at most {MOST_STEPS:,}")
        if not (is_number(self.ponder_weight) and 0 <= self.ponder_weight < math.inf):
            raise UserError(f"ponder_weight is {self.ponder_weight!r}: it must be a number, 0 or more")

    @property
    def distinct_layers(self) -> int:
        """The number of layers of each stack that have parameters of their own."""
        return 1


@cache_class
class HaltCache(NamedTuple):
    """The cache of the halting decision after one step."""

    updated: Any  # (B, T, 1) bool: the cache of masked_update, True if the step changed the state
    unit: LinearCache  # the cache of w · state + b
    p: Any  # (B, T, 1) the probability of stopping after this step


@cache_class
class StepCache(NamedTuple):
    """The cache of one step."""

    layer: Any  # the cache of the layer, of the class that config.norm asks for; None in decoding
    halt: Any  # a HaltCache, or None without halting


@cache_class
class UniversalCache(NamedTuple):
    """The cache of UniversalEncoder and UniversalDecoder."""

    steps: tuple[StepCache, ...]  # one for each step, until all positions have halted
    mix: MixCache | None  # None without halting
    norm: LayerNormCache | None

    @property
    def layers(self) -> tuple[Any, ...]:
        """The cache of the layer at each step. Encoder and Decoder have a cache for each layer instead."""
        return tuple(step.layer for step in self.steps)

    @property
    def ponder(self) -> Array | None:
        """The ponder cost of each position, steps + remainder, (B, T). None without halting."""
        return None if self.mix is None else self.mix.ponder


class Universal(Module):
    """The base class of encoder and decoder: the repeated layer, its position and step vectors, and halting.

    Before step n = 1, 2, ..., two vectors of sinusoids are added to the state, one for the position and one
    for n. With config.positions "none" nothing is added. config.n_layers is the largest number of steps.

    With halting, p_n = sigmoid(w · s_n + b) is the probability that a position stops after step n, where s_n
    is its state after this step. The position stops after the first step at which p_1 + ... + p_n is at least
    1 - epsilon, or after n_layers steps. From then on its state does not change, and other positions may
    still attend to it. The output y is a weighted mean of its states (see mix_states). This follows Graves
    2016 and the text of the paper. The code in the appendix of the paper differs: it computes p from the
    state before the step, it continues to change the states of positions that have stopped, and it computes
    the mean in another way.

    Args:
        make_layer: The function that returns the layer, make_encoder_layer or make_decoder_layer.
        config: The configuration.
        halting: Stop each position separately. Otherwise all positions take n_layers steps.
        halting_epsilon: A position halts when the sum of its probabilities is at least 1 - this.
        halting_bias: The initial value of b. Positions halt earlier if it is larger.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the positions are neither sinusoids nor "none", if halting_epsilon is outside (0, 1),
            or if halting_bias is not a finite number.

    Source: Dehghani et al. 2019.
    """

    def __init__(
        self,
        make_layer: Callable[..., Any],
        config: TransformerConfig,
        *,
        halting: bool = False,
        halting_epsilon: float = 0.01,
        halting_bias: float = 1.0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        _check(config, halting_epsilon, halting_bias)
        rng = default_rng(rng)
        self.n_steps, self.halting_epsilon = config.n_layers, halting_epsilon
        self.layer = make_layer(config, rng=rng, dtype=dtype)
        self.positions: FixedPositions | None = None
        if config.positions != "none":
            layout = {"layout": config.positions, "dtype": dtype}
            self.positions = FixedPositions(config.max_length, config.d_model, **layout)
            # the vectors of the steps 1 .. n_layers; row 0 is not used
            self.times = FixedPositions(config.n_layers + 1, config.d_model, **layout)
        self.halting: Any = None
        if halting:
            self.halting = Linear(config.d_model, 1, rng=rng, dtype=dtype)
            self.halting.bias.value[...] = halting_bias
        self.norm = make_final_norm(config, dtype)

    def _repeat(
        self, x: Array, *others: Any, token_mask: Array | None = None
    ) -> tuple[Array, UniversalCache]:
        """Apply the layer n_steps times, or until all positions have halted. Return (y, cache).

        `others` are the further arguments of the layer. `token_mask` is False at positions that take no step.
        """
        check_token_mask(token_mask, x)
        steps: list[StepCache] = []
        all_run = token_mask is None or self.halting is None
        running: Any = array_module(x).ones(x.shape[:2], bool) if all_run else token_mask  # (B, T) not halted
        for n in range(1, self.n_steps + 1):
            new, layer_cache = self.layer.forward(self._with_vectors(x, n), *others)
            x, halt, running = self._halt(new, x, running, steps)
            steps.append(StepCache(layer_cache, halt))
            if not running.any():
                break
        y, mix = self._mix(x, steps)
        y, norm = (y, None) if self.norm is None else self.norm.forward(y)
        return y, UniversalCache(tuple(steps), mix, norm)

    def backward(self, dy: Array, cache: UniversalCache, *, dponder: Array | None = None) -> Any:
        """Compute the gradients of x and, in a decoder, of the memory.

        Args:
            dy: The gradient of y, of shape (B, T, D).
            cache: The cache of forward.
            dponder: The gradient of cache.ponder, of shape (B, T), or None. If the loss contains
                weight · (mean ponder cost), dponder is weight / (number of tokens) at each token.

        Returns:
            dx, of shape (B, T, D), or (dx, dmemory) with dmemory (B, S, D).
        """
        if self.norm is not None and cache.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dstates, dps = self._mix_backward(dy, cache, dponder)
        dx, dothers = 0, None  # no step uses the last state
        for step, dstate, dp in zip(cache.steps[::-1], dstates[::-1], dps[::-1], strict=True):
            # a state is used in y and in the next step, so its two gradients are added
            dnew, dold = self._halt_backward(dx + dstate, dp, step.halt)
            grads = self.layer.backward(dnew, step.layer)
            dx, *dothers_here = grads if isinstance(grads, tuple) else (grads,)
            dx = dx + dold
            # every step attended to the same memory, so the gradients of all steps are added
            dothers = [a + b for a, b in zip(dothers, dothers_here, strict=True)] if dothers else dothers_here
        return (dx, *dothers) if dothers else dx

    def _with_vectors(self, x: Array, n: int, start: int = 0) -> Array:
        """Return x plus the vectors of its positions and of step n. Shapes: x (B, T, D)."""
        if self.positions is None:
            return x
        position, _ = self.positions.forward(x.shape[1], start)  # (T, D)
        time, _ = self.times.forward(1, n)  # (1, D)
        return x + position + time

    def _halt(self, new: Array, old: Any, running: Array, steps: list[StepCache]) -> Any:
        """Update the states of the positions that have not halted. Return (state, cache, running).

        `new` and `old` are the states after and before the step, (B, T, D). `steps` are the caches of the
        steps before, whose p are added to the p of this step.
        """
        if self.halting is None:
            return new, None, running
        x, updated = masked_update(new, old, running)
        logit, unit_cache = self.halting.forward(x)  # (B, T, 1)
        p, _ = sigmoid(logit)
        total = p.real + sum(step.halt.p.real for step in steps)  # (B, T, 1)
        return x, HaltCache(updated, unit_cache, p), running & (total[..., 0] < 1 - self.halting_epsilon)

    def _halt_backward(self, dstate: Any, dp: Any, cache: HaltCache | None) -> tuple[Any, Any]:
        """Return the gradients (dnew, dold) of the output of the layer and of the state before the step."""
        if cache is None:
            return dstate, 0
        # the state is the output, and p = sigmoid(w · state + b), so its two gradients are added
        dstate = dstate + self.halting.backward(sigmoid_backward(dp[..., None], cache.p), cache.unit)
        return masked_update_backward(dstate, cache.updated)

    def _mix(self, x: Array, steps: list[StepCache]) -> tuple[Array, Any]:
        """Return (y, cache). y is the last state x or, with halting, the weighted mean of all states."""
        if self.halting is None:
            return x, None
        stack = array_module(x).stack
        states = stack([step.halt.unit.x for step in steps])  # (N, B, T, D)
        p = stack([step.halt.p[..., 0] for step in steps])  # (N, B, T)
        taken = stack([step.halt.updated[..., 0] for step in steps])  # (N, B, T)
        return mix_states(states, p, taken)

    def _mix_backward(self, dy: Array, cache: UniversalCache, dponder: Array | None) -> tuple[Any, Any]:
        """Return the gradients (dstates, dp), each with an entry for each step."""
        if cache.mix is None:
            n_before = (
                len(cache.steps) - 1
            )  # y is the last state: the states before it were used by steps only
            return [0] * n_before + [dy], [None] * (n_before + 1)
        return mix_states_backward(dy, cache.mix, dponder=dponder)


class UniversalEncoder(Universal):
    """One encoder layer that is repeated n_layers times, or until all tokens have halted.

    With halting, the positions where token_mask is False take no step, and their output is 0.
    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S), token_mask (B, S) bool -> memory (B, S, D).

    Args:
        config: The configuration.
        settings: The other settings of Universal.

    Source: Dehghani et al. 2019, section 2.
    """

    def __init__(self, config: TransformerConfig, **settings: Any) -> None:
        super().__init__(make_encoder_layer, config, **settings)

    def forward(
        self,
        x: Array,
        mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
        *,
        token_mask: Array | None = None,
    ) -> tuple[Array, Any]:
        """Compute all steps.

        Args:
            x: The vectors of the source tokens, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, S, S), or an AttentionMask. True means that the query may
                attend to the key.
            context: The settings of the forward pass.
            token_mask: Bool, of shape (B, S). False at positions that take no step. None for all True.

        Returns:
            The memory, of shape (B, S, D), and the cache.
        """
        return self._repeat(x, mask, context, token_mask=token_mask)

    def encode(self, x: Array, mask: Array | AttentionMask | None = None) -> Array:
        """Return the memory. Shapes: x (B, S, D), mask as in forward -> memory (B, S, D)."""
        return self.forward(x, mask)[0]


class UniversalDecoder(Universal):
    """One decoder layer that is repeated in the same way. It attends to the memory at every step.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S), token_mask (B, T) bool -> y (B, T, D).

    Args:
        config: The configuration.
        settings: The other settings of Universal.

    Source: Dehghani et al. 2019, section 2.
    """

    def __init__(self, config: TransformerConfig, **settings: Any) -> None:
        super().__init__(make_decoder_layer, config, **settings)

    def forward(
        self,
        x: Array,
        memory: Any,
        mask: Array | AttentionMask | None = None,
        memory_mask: Array | AttentionMask | None = None,
        context: Context = INFERENCE,
        *,
        token_mask: Array | None = None,
    ) -> tuple[Array, Any]:
        """Compute all steps.

        Args:
            x: The vectors of the target tokens, of shape (B, T, D).
            memory: The output of the encoder, of shape (B, S, D).
            mask: Bool, broadcastable to (B, H, T, T), or an AttentionMask, for self-attention.
            memory_mask: Bool, broadcastable to (B, H, T, S), or an AttentionMask, for cross-attention.
            context: The settings of the forward pass.
            token_mask: Bool, of shape (B, T). False at positions that take no step. None for all True.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        return self._repeat(x, memory, mask, memory_mask, context, token_mask=token_mask)

    def project_memory(self, memory: Any) -> Any:
        """Return the keys and values of the memory (B, S, D), which are the same at every step."""
        return self.layer.project_memory(memory)

    def decode_step(
        self, x: Array, kv_cache: Any, memory_kv: Any, memory_mask: Array | AttentionMask | None = None
    ) -> tuple[Array, Any]:
        """Compute the next position, without a cache for a backward pass.

        All n_steps steps are computed, even if the position halts earlier: a later token may take more steps,
        and it attends to the keys and values of this position at each of its steps.

        Args:
            x: The vector of the position, of shape (B, 1, D).
            kv_cache: A list with the KV cache of each step, or None at the first position.
            memory_kv: The keys and values of the memory, from project_memory.
            memory_mask: Bool, broadcastable to (B, H, 1, S), or an AttentionMask.

        Returns:
            y, of shape (B, 1, D), and the new list of KV caches.
        """
        kv_cache = [None] * self.n_steps if kv_cache is None else kv_cache
        start = 0 if kv_cache[0] is None else kv_cache[0].k.shape[2]
        steps: list[StepCache] = []
        new_kv_cache = []
        running: Any = array_module(x).ones(x.shape[:2], bool)  # (B, 1)
        for n in range(1, self.n_steps + 1):
            new, step_kv_cache = self.layer.decode_step(
                self._with_vectors(x, n, start), kv_cache[n - 1], memory_kv, memory_mask
            )
            x, halt, running = self._halt(new, x, running, steps)
            steps.append(StepCache(None, halt))
            new_kv_cache.append(step_kv_cache)
        y, _ = self._mix(x, steps)
        return (y if self.norm is None else self.norm.forward(y)[0]), new_kv_cache


class UniversalTransformer(Transformer):
    """A translator whose encoder and decoder each repeat one layer, for as many steps as each token needs.

        logits = output(decoder(target(target_in), encoder(source(source))))

    The training loss is the cross-entropy plus config.ponder_weight · Σ ponder / (number of target tokens),
    where the sum goes over the source tokens and the target tokens. Padding takes no step and costs nothing.

    In the decoder, the number of steps of a position depends on this position and on earlier ones only. So
    decoding one token at a time gives the same logits as the whole sentence.

    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary, or if sentences are empty or longer than max_length.

    Source: Dehghani et al. 2019; the loss is that of Graves 2016, section 2.1.
    """

    config: UniversalConfig
    supports_packing = False

    def __init__(
        self, config: UniversalConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.config = config
        bare = config.replace(positions="none")  # the stacks add the positions, before every step
        halting: dict[str, Any] = {
            "halting": config.halting,
            "halting_epsilon": config.halting_epsilon,
            "halting_bias": config.halting_bias,
        }
        self.source = make_embedding(bare, config.source_vocab, rng, dtype)
        self.encoder: Any = UniversalEncoder(config, **halting, rng=rng, dtype=dtype)
        self.target = make_embedding(bare, config.target_vocab, rng, dtype)
        if config.tied == "all":
            self.target.tokens.weight = self.source.tokens.weight
        self.decoder: Any = UniversalDecoder(config, **halting, rng=rng, dtype=dtype)
        self.output = make_output(config, self.target.tokens, rng, dtype)
        self.has_auxiliary_loss = config.halting
        self.flatten()

    def forward(
        self,
        source: Any,
        target_in: Any,
        *,
        train: bool = False,
        rng: np.random.Generator | None = None,
        packed: bool = False,
    ) -> tuple[Array, Any]:
        """Compute the logits of the next token at each position of target_in.

        Args:
            source: The source token ids, of shape (B, S).
            target_in: The target token ids, shifted right, of shape (B, T).
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.
            packed: Must be False.

        Returns:
            The logits, of shape (B, T, V), and the cache.
        """
        if packed:
            raise UserError("a Universal Transformer does not support packing: leave packed=False")
        source = self._take_ids(source, self.config.source_vocab, "source")
        target_in = self._take_ids(target_in, self.config.target_vocab, "target_in")
        check_pairs(source, target_in)
        context = Context(train, rng)
        masks = self._masks(source, target_in, packed)
        of_source = source != self.config.pad_id
        of_target = self._with_start_marked(target_in) != self.config.pad_id

        x, source_cache = self.source.forward(source, context)  # (B, S, D)
        memory, encoder_cache = self.encoder.forward(x, masks.encoder, context, token_mask=of_source)
        x, target_cache = self.target.forward(target_in, context)  # (B, T, D)
        x, decoder_cache = self.decoder.forward(
            x, memory, masks.decoder, masks.cross, context, token_mask=of_target
        )
        logits, output_cache = self.output.forward(x)  # (B, T, V)
        return logits, TransformerCache(
            source_cache, encoder_cache, target_cache, decoder_cache, output_cache, (None, None)
        )

    def backward(self, dlogits: Array, cache: Any, *, dauxiliary: float = 0.0) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient.

        Args:
            dlogits: The gradient of the logits, of shape (B, T, V).
            cache: The cache of forward.
            dauxiliary: The gradient of auxiliary_loss(cache).
        """
        dponder = dauxiliary * self.config.ponder_weight
        dx = self.output.backward(dlogits, cache.output)
        del dlogits  # a large array, whose memory can be freed if the caller does not use it either
        dx, dmemory = self.decoder.backward(dx, cache.decoder, dponder=_like_ponder(dponder, cache.decoder))
        self.target.backward(dx, cache.target)
        dx = self.encoder.backward(dmemory, cache.encoder, dponder=_like_ponder(dponder, cache.encoder))
        self.source.backward(dx, cache.source)

    def auxiliary_loss(self, cache: Any) -> Array:
        """Return ponder_weight · Σ (steps + remainder) over all source and target tokens, of shape ()."""
        return self.config.ponder_weight * (cache.encoder.ponder.sum() + cache.decoder.ponder.sum())


def _like_ponder(dponder: Any, cache: UniversalCache) -> Array | None:
    """Return dponder for each position, (B, T), or None without halting."""
    if cache.ponder is None:
        return None
    return array_module(cache.ponder).full_like(cache.ponder, dponder)


def _check(config: TransformerConfig, halting_epsilon: float, halting_bias: float) -> None:
    if config.positions not in (*LAYOUTS, "none"):
        raise UserError(
            f"positions is {config.positions!r}: a Universal Transformer adds sinusoids at every step, so "
            f"choose one of {', '.join(LAYOUTS)}, or none"
        )
    if not (is_number(halting_epsilon) and 0 < halting_epsilon < 1):
        raise UserError(f"halting_epsilon is {halting_epsilon!r}: it must be above 0 and below 1")
    if not (is_number(halting_bias) and math.isfinite(halting_bias)):
        raise UserError(f"halting_bias is {halting_bias!r}: it must be a finite number")
