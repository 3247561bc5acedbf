"""Chapter 27: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== lora-backward
scale * dy @ b.T => dy @ b.T ## dh lacks the factor scale, by which the product with b is multiplied
scale * h.T @ dy => h.T @ dy ## db lacks the factor scale, by which the product with b is multiplied
dy @ weight.T + dh @ a.T => dy @ weight.T
    ## dx is the gradient through the frozen weight alone: x is also multiplied by a
dy @ weight.T + dh @ a.T => dh @ a.T ## dx lacks the frozen weight: it does not learn, but x passes through it
=== quantize
2 ** (bits - 1) - 1 => 2**bits - 1
    ## the largest whole number leaves no bit for the sign: with 4 bits it is 7, and not 15
np.abs(weight).max(0, keepdims=True) => np.abs(weight).max(keepdims=True)
    ## there is one scale for the whole matrix: each column has its own
np.abs(weight).max(0, keepdims=True) => weight.max(0, keepdims=True)
    ## the scale is that of the largest number: a negative one may be larger in absolute value
np.round(weight / scale) => np.floor(weight / scale)
    ## the numbers are rounded down: the nearest whole number has half the error
=== dpo-backward
np.exp(margin) => np.exp(-margin)
    ## this is sigmoid(margin): the derivative of -log sigmoid(m) is -sigmoid(-m), large for a wrong order
return beta * dmargin, -beta * dmargin => return beta * dmargin, beta * dmargin
    ## both answers have the same gradient: the worse one is subtracted in the margin
return beta * dmargin, -beta * dmargin => return dmargin, -dmargin
    ## the factor beta of the margin is left out
=== group-advantages
rewards - rewards.mean(1, keepdims=True) => rewards - rewards.mean()
    ## the mean is that of all questions: the baseline of an answer is the mean of its own question
rewards.std(1, keepdims=True) => rewards.std()
    ## the standard deviation is that of all questions: each question has its own
rewards.std(1, keepdims=True) => rewards.var(1, keepdims=True)
    ## the difference is divided by the variance, and not by its square root
np.where(deviation > 0, deviation, 1) => (deviation + NUMBER)
    ## a small number is added to the standard deviation: divide by the deviation itself
=== accept
draw(np.maximum(p[i] - q[i], 0), rng) => draw(p[i], rng)
    ## a token that is not kept is replaced by a draw from p: what q draws too rarely stays too rare
draw(np.maximum(p[i] - q[i], 0), rng) => draw(np.maximum(q[i] - p[i], 0), rng)
    ## the replacement is drawn from q - p: these are the tokens that were drawn too often
draw(p[-1], rng) => draw(p[0], rng)
    ## after the last token, the first row of p is used: the last row has the probabilities of the next token
return i, draw => return i + 1, draw ## the token that is not kept is counted as kept
"""
