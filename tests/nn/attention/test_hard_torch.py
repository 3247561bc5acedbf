"""PyTorch as the oracle of hard attention, to 1e-10: its Categorical, and autograd of a surrogate loss."""

import numpy as np
import pytest

import npformer.functional as F
from npformer.nn.attention import HardAttention, Similarity

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

rng = np.random.default_rng(0)
B, T, S, D, N = 3, 4, 7, 6, 5
FAR = -1e4  # the softmax gives it weight 0
WORDS = np.arange(S) < np.array([7, 5, 2])[:, None]  # (B, S)


def tensor(array):
    return torch.tensor(array, requires_grad=True)


def test_log_probability_and_entropy():
    scores = rng.standard_normal((B, T, S))
    sample = F.one_hot_sample(F.softmax(np.where(WORDS[:, None], scores, -np.inf))[0], rng, N)
    theirs = tensor(scores)
    hidden = torch.tensor(~WORDS[:, None])
    logits = theirs.masked_fill(hidden, FAR)
    categorical = torch.distributions.Categorical(logits=logits)
    log_prob = categorical.log_prob(torch.tensor(sample.argmax(-1)))
    ours, chosen = F.log_probability(scores, sample, WORDS[:, None])
    np.testing.assert_allclose(ours, log_prob.detach(), atol=1e-10)
    h, undecided = F.entropy(scores, WORDS[:, None])
    np.testing.assert_allclose(h, categorical.entropy().detach(), atol=1e-10)
    for value, dvalue, ours in (
        (log_prob, rng.standard_normal((N, B, T)), lambda d: F.log_probability_backward(d, chosen)),
        (categorical.entropy(), rng.standard_normal((B, T)), lambda d: F.entropy_backward(d, undecided)),
    ):
        (expected,) = torch.autograd.grad(value, theirs, torch.tensor(dvalue), retain_graph=True)
        np.testing.assert_allclose(ours(dvalue), expected, atol=1e-10)


def test_the_layer_by_a_surrogate_loss():
    """The loss is the mean of -log p(y | s) - λ_r (log p - b) log p(s) - λ_e H, with the bracket detached."""
    similarity = Similarity("general", D, D, rng=rng, dtype=np.float64)
    hard = HardAttention(similarity)
    queries, memory = rng.standard_normal((B, T, D)), rng.standard_normal((B, S, D))
    target = rng.standard_normal((T, D))
    settings = {"reward_weight": 0.7, "entropy_weight": 0.3}
    context, cache = hard.forward(queries, memory, WORDS, train=True, rng=np.random.default_rng(1), draws=N)
    log_likelihood = np.log(1 / (1 + np.exp(-(context * target).sum((-1, -2)))))  # (N, B)
    dsum = -(1 - np.exp(log_likelihood)) / (N * B)
    dlog_prob, dentropy = F.score_function(log_likelihood, -0.4, **settings)
    dcontext = dsum[..., None, None] * target
    ours = hard.backward(dcontext, cache, dlog_prob=dlog_prob, dentropy=dentropy)

    q, m, weight = tensor(queries), tensor(memory), tensor(similarity.weights[0].value)
    scores = (q @ weight @ m.mT).masked_fill(torch.tensor(~WORDS[:, None]), FAR)
    categorical = torch.distributions.Categorical(logits=scores)
    places = torch.tensor(cache.sample.argmax(-1))  # (N, B, T)
    read = torch.stack([m[torch.arange(B)[:, None], draw] for draw in places])
    theirs = torch.nn.functional.logsigmoid((read * torch.tensor(target)).sum((-1, -2)))
    reward = theirs.detach() + 0.4
    # the entropy of the T choices of a sentence together
    loss = -(theirs + 0.7 * reward * categorical.log_prob(places).sum(-1)).mean()
    loss = loss - 0.3 * categorical.entropy().sum(-1).mean()
    expected = torch.autograd.grad(loss, (q, m, weight))
    for one, other in zip((*ours, similarity.weights[0].grad), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
