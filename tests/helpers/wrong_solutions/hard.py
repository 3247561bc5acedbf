"""Wrong gradients through a random draw."""

from wrong_solutions.wrong import Wrong

HARD = (
    Wrong("entropy-backward", "return -(dh", "return (dh", "sign is wrong"),
    Wrong("entropy-backward", " + h[..., None]", " + 1", "term.*(missing|left out)|missing"),
    Wrong("entropy-backward", " + h[..., None]", " - h[..., None]", "sign"),
    Wrong("entropy-backward", "weights * (_log", "(_log", "factor.*left out"),
    Wrong("entropy-backward", "_log(weights)", "array_module(weights).log(weights)", "NaN"),
    Wrong("score-function", "dlog_prob = -reward_weight", "dlog_prob = reward_weight", "sign is wrong"),
    Wrong("score-function", "(log_likelihood - baseline)", "(log_likelihood + baseline)", "sign|baseline"),
    Wrong("score-function", " / log_likelihood.size", "", r"12|3 \(samples\)|divided|mean|twelve"),
    Wrong("score-function", "-entropy_weight / sentences", "entropy_weight / sentences", "sign is wrong"),
)
