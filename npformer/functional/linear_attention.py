"""Linear attention and the delta rule, also gated: attention whose memory is a matrix of fixed size.

A causal attention without softmax can be read as a memory S of shape (K, L) that each token writes into:

    linear attention:  S_t = S_{t-1} + k_tᵀ v_t,                               y_t = q_t S_t
    delta rule:        S_t = S_{t-1} + β_t k_tᵀ (v_t - k_t S_{t-1}),           y_t = q_t S_t
    gated delta rule:  the delta rule with α_t S_{t-1} in place of S_{t-1}

Linear attention only adds. The delta rule first reads what the memory holds for the key, and writes the
difference, so that a key that comes again replaces its value. With gates, the whole memory decays first, by a
factor α_t that depends on the token, so that a model can also forget keys that never come again.

A loop over tokens would be slow. The functions compute chunks of tokens with matrix products: inside a chunk
the tokens attend to each other, and S carries what the chunks before have written.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.validation import require_count

CHUNK = 32  # tokens that are computed at once


@cache_class
class LinearAttentionCache(NamedTuple):
    """The cache of linear_attention."""

    q: Array  # (..., T, K) queries
    k: Array  # (..., T, K) keys
    v: Array  # (..., T, L) values
    states: list[Array]  # for each chunk, the memory (..., K, L) before it
    chunk: int


def linear_attention(q: Array, k: Array, v: Array, chunk: int = CHUNK) -> tuple[Array, LinearAttentionCache]:
    """Compute y_t = Σ_{s ≤ t} (q_t · k_s) v_s: causal attention without softmax.

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., T, K).
        v: The values, of shape (..., T, L).
        chunk: The number of tokens that are computed at once. It changes the rounding only.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If chunk is below 1.

    Source: Katharopoulos et al. 2020, section 3.4; Yang et al. 2024, "Gated linear attention", section 2
        (the chunks).
    """
    state = array_module(q).zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype)
    ys, states = [], []
    for part in _chunks(q, chunk):
        q_c, k_c, v_c = q[..., part, :], k[..., part, :], v[..., part, :]
        states.append(state)
        ys.append(q_c @ state + _lower(q_c @ _t(k_c)) @ v_c)
        state = state + _t(k_c) @ v_c
    return array_module(q).concatenate(ys, -2), LinearAttentionCache(q, k, v, states, chunk)


def linear_attention_backward(dy: Array, cache: LinearAttentionCache) -> tuple[Array, Array, Array]:
    """Return the gradients dq (..., T, K), dk (..., T, K) and dv (..., T, L)."""
    xp = array_module(dy)
    dstate = xp.zeros_like(cache.states[0])  # of the memory after the chunk
    dqs, dks, dvs = [], [], []
    for part, state in zip(_chunks(dy, cache.chunk)[::-1], cache.states[::-1], strict=True):
        q, k, v = (array[..., part, :] for array in cache[:3])
        dy_c = dy[..., part, :]
        # y = q state + lower(q kᵀ) v
        dscores = _lower(dy_c @ _t(v))
        dqs.append(dy_c @ _t(state) + dscores @ k)
        # the memory after the chunk = state + kᵀ v
        dks.append(_t(dscores) @ q + v @ _t(dstate))
        dvs.append(_t(_lower(q @ _t(k))) @ dy_c + k @ dstate)
        dstate = dstate + _t(q) @ dy_c
    return _joined(dqs), _joined(dks), _joined(dvs)


@cache_class
class DeltaRuleCache(NamedTuple):
    """The cache of delta_rule."""

    q: Array  # (..., T, K) queries
    k: Array  # (..., T, K) keys
    v: Array  # (..., T, L) values
    beta: Array  # (..., T) the share of the difference that is written
    states: list[Array]  # for each chunk, the memory (..., K, L) before it
    written: list[Array]  # for each chunk, u (..., C, L): what its tokens write
    chunk: int


def delta_rule(q: Array, k: Array, v: Array, beta: Array, chunk: int = CHUNK) -> tuple[Array, DeltaRuleCache]:
    """Compute y_t = q_t S_t with S_t = S_{t-1} + β_t k_tᵀ (v_t - k_t S_{t-1}).

    A token writes u_t = β_t (v_t - k_t S_{t-1}). In a chunk that begins with the memory S, the memory before
    token t is S + Σ_{s < t} k_sᵀ u_s. So the u of a chunk solve a triangular system, and then the chunk is
    one of linear attention with the values u:

        (1 + A) u = β (v - k S),  A = β k kᵀ below the diagonal
        y = q S + lower(q kᵀ) u,  S ← S + kᵀ u

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., T, K), usually of length 1.
        v: The values, of shape (..., T, L).
        beta: The share of each difference that is written, of shape (..., T), usually from 0 to 1.
        chunk: The number of tokens that are computed at once. It changes the rounding only.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If chunk is below 1.

    Source: Schlag et al. 2021 (the delta rule); Yang et al. 2024, "Parallelizing linear transformers with the
        delta rule over sequence length" (the chunks).
    """
    state = array_module(q).zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype)
    ys, states, written = [], [], []
    for part in _chunks(q, chunk):
        q_c, k_c, v_c, beta_c = q[..., part, :], k[..., part, :], v[..., part, :], beta[..., part, None]
        u = _inverse(beta_c, k_c) @ (beta_c * (v_c - k_c @ state))  # (..., C, L)
        states.append(state)
        written.append(u)
        ys.append(q_c @ state + _lower(q_c @ _t(k_c)) @ u)
        state = state + _t(k_c) @ u
    return array_module(q).concatenate(ys, -2), DeltaRuleCache(q, k, v, beta, states, written, chunk)


def delta_rule_backward(dy: Array, cache: DeltaRuleCache) -> tuple[Array, Array, Array, Array]:
    """Return the gradients dq (..., T, K), dk (..., T, K), dv (..., T, L) and dbeta (..., T)."""
    dstate = array_module(dy).zeros_like(cache.states[0])  # of the memory after the chunk
    found: tuple[list[Array], ...] = [], [], [], []
    chunks = zip(_chunks(dy, cache.chunk), cache.states, cache.written, strict=True)
    for part, state, u in list(chunks)[::-1]:
        q, k, v = (array[..., part, :] for array in cache[:3])
        dy_c, beta = dy[..., part, :], cache.beta[..., part, None]  # (..., C, L) and (..., C, 1)
        # y = q state + lower(q kᵀ) u, and the memory after the chunk = state + kᵀ u
        dscores = _lower(dy_c @ _t(u))
        dq = dy_c @ _t(state) + dscores @ k
        dk = _t(dscores) @ q + u @ _t(dstate)
        du = _t(_lower(q @ _t(k))) @ dy_c + k @ dstate
        dstate = dstate + _t(q) @ dy_c
        # (1 + A) u = w,  w = β difference,  difference = v - k state
        dw = _t(_inverse(beta, k)) @ du
        difference = v - k @ state
        dv = beta * dw
        dk = dk - dv @ _t(state)
        dstate = dstate - _t(k) @ dv
        # A = β k kᵀ below the diagonal
        da = -_lower(dw @ _t(u), -1)
        dproducts = beta * da
        dk = dk + (dproducts + _t(dproducts)) @ k
        dbeta = (dw * difference).sum(-1) + (da * (k @ _t(k))).sum(-1)
        for parts, gradient in zip(found, (dq, dk, dv, dbeta), strict=True):
            parts.append(gradient)
    return _joined(found[0]), _joined(found[1]), _joined(found[2]), _joined(found[3], -1)


@cache_class
class GatedDeltaRuleCache(NamedTuple):
    """The cache of gated_delta_rule."""

    q: Array  # (..., T, K) queries
    k: Array  # (..., T, K) keys
    v: Array  # (..., T, L) values
    beta: Array  # (..., T) the share of the difference that is written
    log_decay: Array  # (..., T) the logarithm of α
    states: list[Array]  # for each chunk, the memory (..., K, L) before it
    written: list[Array]  # for each chunk, u (..., C, L): what its tokens write
    chunk: int


class Decay(NamedTuple):
    """The products of α in a chunk of C tokens."""

    since_start: Array  # (..., C, 1) of the tokens up to t: how much is left of the memory before the chunk
    until_end: Array  # (..., C, 1) of the tokens after t: how much is left of its u at the end of the chunk
    between: Array  # (..., C, C) of the tokens from s + 1 to t below the diagonal, 1 on it, and 0 above

    @property
    def whole(self) -> Array:
        """The product over the whole chunk, of shape (..., 1, 1)."""
        return self.since_start[..., -1:, :]


def gated_delta_rule(
    q: Array, k: Array, v: Array, beta: Array, log_decay: Array, chunk: int = CHUNK
) -> tuple[Array, GatedDeltaRuleCache]:
    """Compute y_t = q_t S_t with S_t = α_t S_{t-1} + β_t k_tᵀ (v_t - α_t k_t S_{t-1}).

    The formulas are those of delta_rule with products of α: γ_t up to token t, and Γ_ts from s + 1 to t.

        (1 + A) u = β (v - γ k S),  A = β (k kᵀ ∘ Γ) below the diagonal
        y = γ q S + (lower(q kᵀ) ∘ Γ) u,  S ← γ_C S + (Γ_C k)ᵀ u

    Args:
        q: The queries, of shape (..., T, K).
        k: The keys, of shape (..., T, K), usually of length 1.
        v: The values, of shape (..., T, L).
        beta: The share of each difference that is written, of shape (..., T), usually from 0 to 1.
        log_decay: The logarithms of α, of shape (..., T), usually 0 or less. Products of many α are sums of
            them, so that no product has to be divided by another one that is almost 0.
        chunk: The number of tokens that are computed at once. It changes the rounding only.

    Returns:
        y, of shape (..., T, L), and the cache.

    Raises:
        UserError: If chunk is below 1.

    Source: Yang et al. 2025, "Gated delta networks", section 3.
    """
    state = array_module(q).zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]), v.dtype)
    ys, states, written = [], [], []
    for part in _chunks(q, chunk):
        q_c, k_c, v_c, beta_c = q[..., part, :], k[..., part, :], v[..., part, :], beta[..., part, None]
        decay = _decay(log_decay[..., part])
        w = beta_c * (v_c - decay.since_start * (k_c @ state))
        u = _inverse(beta_c, k_c, decay.between) @ w  # (..., C, L)
        states.append(state)
        written.append(u)
        ys.append(decay.since_start * (q_c @ state) + (q_c @ _t(k_c) * decay.between) @ u)
        state = decay.whole * state + _t(decay.until_end * k_c) @ u
    cache = GatedDeltaRuleCache(q, k, v, beta, log_decay, states, written, chunk)
    return array_module(q).concatenate(ys, -2), cache


def gated_delta_rule_backward(
    dy: Array, cache: GatedDeltaRuleCache
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the gradients dq and dk (..., T, K), dv (..., T, L), dbeta and dlog_decay (..., T)."""
    dstate = array_module(dy).zeros_like(cache.states[0])  # of the memory after the chunk
    found: tuple[list[Array], ...] = [], [], [], [], []
    chunks = zip(_chunks(dy, cache.chunk), cache.states, cache.written, strict=True)
    for part, state, u in list(chunks)[::-1]:
        q, k, v = (array[..., part, :] for array in cache[:3])
        dy_c, beta = dy[..., part, :], cache.beta[..., part, None]  # (..., C, L) and (..., C, 1)
        decay = _decay(cache.log_decay[..., part])
        since, until, between = decay
        # y = since (q state) + (q kᵀ between) u
        dscores = dy_c @ _t(u)
        dq = since * dy_c @ _t(state) + (dscores * between) @ k
        dk = _t(dscores * between) @ q
        du = _t(q @ _t(k) * between) @ dy_c
        dsince, dbetween = (dy_c * (q @ state)).sum(-1), dscores * (q @ _t(k))
        # the memory after the chunk = whole state + (until k)ᵀ u
        du = du + until * k @ dstate
        dk = dk + until * (u @ _t(dstate))
        duntil, dwhole = (k * (u @ _t(dstate))).sum(-1), (dstate * state).sum((-1, -2))
        dstate = decay.whole * dstate + _t(since * q) @ dy_c
        # (1 + A) u = w,  w = β difference,  difference = v - since (k state)
        dw = _t(_inverse(beta, k, between)) @ du
        dv = beta * dw
        dbeta = (dw * (v - since * (k @ state))).sum(-1)
        dk = dk - since * dv @ _t(state)
        dsince = dsince - (dv * (k @ state)).sum(-1)
        dstate = dstate - _t(since * k) @ dv
        # A = β k kᵀ between, below the diagonal
        da = -_lower(dw @ _t(u), -1)
        dproducts = beta * da * between
        dk = dk + (dproducts + _t(dproducts)) @ k
        dbeta = dbeta + (da * (k @ _t(k)) * between).sum(-1)
        dbetween = dbetween + beta * da * (k @ _t(k))
        dsince[..., -1] += dwhole  # whole = the last number of since
        dlog = _decay_backward(dsince, duntil, dbetween, decay)
        for parts, gradient in zip(found, (dq, dk, dv, dbeta, dlog), strict=True):
            parts.append(gradient)
    dq, dk, dv = (_joined(parts) for parts in found[:3])
    return dq, dk, dv, _joined(found[3], -1), _joined(found[4], -1)


def _decay(log_decay: Array) -> Decay:
    """Return the products of α in a chunk, from their logarithms (..., C)."""
    xp = array_module(log_decay)
    total = xp.cumsum(log_decay, -1)[..., None]  # (..., C, 1) sums up to token t
    between = xp.exp(_lower(total - _t(total)))  # above the diagonal, exp could overflow
    return Decay(xp.exp(total), xp.exp(total[..., -1:, :] - total), _lower(between))


def _decay_backward(dsince: Array, duntil: Array, dbetween: Array, decay: Decay) -> Array:
    """Return the gradient of the logarithms of α, of shape (..., C).

    Args:
        dsince: The gradient of since_start, of shape (..., C).
        duntil: The gradient of until_end, of shape (..., C).
        dbetween: The gradient of between, of shape (..., C, C).
        decay: The products.
    """
    # since = exp(total), until = exp(last total - total), between = exp(total_t - total_s)
    duntil = duntil * decay.until_end[..., 0]
    dbetween = dbetween * decay.between
    dtotal = dsince * decay.since_start[..., 0] - duntil + dbetween.sum(-1) - dbetween.sum(-2)
    dtotal[..., -1] += duntil.sum(-1)
    # total_t = Σ_{s ≤ t} log α_s
    return array_module(dtotal).cumsum(dtotal[..., ::-1], -1)[..., ::-1]


def _inverse(beta: Array, k: Array, between: Array | int = 1) -> Array:
    """Return the inverse of 1 + A, where A = β k kᵀ below the diagonal, times `between` with gates.

    The C-th power of A is 0. So (1 + A)⁻¹ = 1 - A + A² - ... = (1 - A) (1 + A²) (1 + A⁴) ..., and a few
    products suffice. Shapes: beta (..., C, 1), k (..., C, K) -> (..., C, C).
    """
    power = -_lower(beta * (k @ _t(k)) * between, -1)  # (..., C, C)
    inverse = power + array_module(k).eye(k.shape[-2], dtype=k.dtype)
    for _ in range((k.shape[-2] - 1).bit_length() - 1):
        power = power @ power
        inverse = inverse + inverse @ power
    return inverse


def _chunks(array: Array, chunk: int) -> list[slice]:
    """Return the slices of the tokens of an array (..., T, K) into chunks."""
    require_count("chunk", chunk)
    return [slice(start, start + chunk) for start in range(0, array.shape[-2], chunk)]


def _joined(parts: list[Array], axis: int = -2) -> Array:
    """Return arrays of chunks, the last chunk first, as one array."""
    return array_module(parts[0]).concatenate(parts[::-1], axis)


def _lower(x: Array, diagonal: int = 0) -> Array:
    """Return the lower triangle of matrices, from this diagonal on, and 0 elsewhere."""
    return array_module(x).tril(x, diagonal)


def _t(x: Array) -> Array:
    """Return the transposed matrices. Shapes: (..., M, N) -> (..., N, M)."""
    return x.swapaxes(-1, -2)
