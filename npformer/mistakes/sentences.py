"""The sentences of the mistakes that many solutions share: a table of changes, each with a template.

A row has the form of the rows for one exercise, "correct code => wrong code ## the sentence" (see tables.py).
Single capital letters stand for parts of the code:

    C   a number                              V   a variable that is known at this place
    F   a function                            W   another such variable, each in turn
    M   a statistic, such as sum              P   an argument of the solution's function
    G   the incoming gradient, where a gradient is computed
    *Q, *R, *S   any number of arguments or elements
    other letters: any expression, or the statements of a case
    NUMBER   a number in the learner's code that the solution does not have, each in turn

"result = A" stands for the whole value of a line. In a template, {A} is the text of a part, {result} is
what the line computes, and {where} is the same with "in", or nothing in a returned value. If two rows give
the same numbers, the upper one is named.
"""

EQUALITY = "wrong by the case of equality (< or <=, > or >=)"
SIGNS = {
    "<": "<= >= > == !=",
    "<=": "< > >= == !=",
    ">": ">= <= < == !=",
    ">=": "> < <= == !=",
    "==": "<= != < >= >",
    "!=": "< == > <= >=",
}  # of each comparison: that with the other case of equality, its opposite, and the rest

SENTENCES = (
    r"""
    A * V * (1 - V) => A ## the derivative of the sigmoid, the factor {V} (1 - {V}), is left out{where}
    => A * V ## the factor 1 - {V} of the derivative of the sigmoid is left out{where}
    => A * (1 - V) ## the factor {V} of the derivative of the sigmoid is left out{where}
    result = V * (1 - V) => result = V
        ## the factor 1 - {V} of the derivative of the sigmoid is left out{where}
    => result = 1 - V ## the factor {V} of the derivative of the sigmoid is left out{where}
    A * (1 - V**2) => A ## the derivative of tanh, the factor 1 - {V}², is left out{where}
    A = A + B => A = B ## {A} is overwritten: what it held before must be added to it
    A + B => A ## the term {B} is left out{where}
    A + B => B ## the term {A} is left out{where}
    A - B => A ## {B} is not subtracted from {A}{where}: the term is left out
    A - B => -B ## the term {A} is left out{where}
    A if B else X => A ## {A} is used in every case{where}: it belongs to the case {B} only
    => X ## {X} is used in every case{where}: it is wrong in the case {B}
    # sums and means
    A.sum(*R) => A.mean(*R) ## the sum of {A} is averaged{where}: it must be a sum and not a mean
    A.mean(*R) => A.sum(*R) ## the mean of {A} is a sum{where}: it is not divided by the number of entries
    A.mean(C, *R) => A.sum(C, *R) / (A.shape[C] - 1)
        ## the mean of {A} is divided by D - 1 instead of D{where}
    A.M(C, *R) => A.M(0, *R) ## the {M} of {A} runs over the wrong axis{where}: over axis 0 instead of {C}
    => A.M(-1, *R) ## the {M} of {A} runs over the wrong axis{where}: over the last axis instead of {C}
    => A.M(-2, *R)
        ## the {M} of {A} runs over the wrong axis{where}: over the last axis but one instead of {C}
    => A.M(1, *R) ## the {M} of {A} runs over the wrong axis{where}: over axis 1 instead of {C}
    A.M(B, *R) => A.M() ## the {M} of {A} runs over all entries{where}: each row needs its own
    A.sum(*R) => A ## {A} is not summed{where}: it is used itself
    A.M(*R) => A ## the {M} of {A} is left out{where}: {A} itself is used
    A.sum(B, *R) => np.take(A, [0], B).sum(B, *R) ## only the first of {A} counts{where}: all must be summed
    => np.take(A, [-1], B).sum(B, *R) ## only the last of {A} counts{where}: all must be summed
    A.sum(*R) => A.prod(*R) ## the entries of {A} are multiplied instead of summed{where}
    A.var(*R) => A.std(*R) ## the standard deviation is used instead of the variance{where}
    A.std(*R) => A.var(*R) ## the variance is used instead of the standard deviation{where}
    A.T @ B => A[:1].T @ B[:1] ## only the first row counts{where}: the products of all rows must be summed
    => A[-1:].T @ B[-1:] ## only the last row counts{where}: the products of all rows must be summed

    # products and quotients
    G * A => A ## the factor {G} is left out{where}: the chain rule multiplies by it
    A * B => A ## the factor {B} is left out{where}
    A * B => B ## the factor {A} is left out{where}
    A * V => A * V**3 ## the power of {V} is 3 instead of 1{where}
    V * B => V**3 * B ## the power of {V} is 3 instead of 1{where}
    A * V => A * V * V ## the factor {V} is applied twice{where}: it is squared
    V * B => V * V * B ## the factor {V} is applied twice{where}: it is squared
    A * V => A / V ## {result} is divided by {V} instead of multiplied
    V * B => B / V ## {result} is divided by {V} instead of multiplied
    A * B => A + B ## {A} and {B} are added{where} instead of multiplied
    A * V => A * (1 - V) ## 1 - {V} is used instead of {V}{where}
    V * B => (1 - V) * B ## 1 - {V} is used instead of {V}{where}
    A / B => A ## {A} is not divided by {B}{where}: this divisor is left out
    A / B => A / B / B ## {result} is divided by {B} twice
    A / B => A * B ## {result} is multiplied by {B} instead of divided
    A / B => A / len(P) ## {A} is divided by the length of {P} instead of {B}{where}
    A / B => A / P.size ## {A} is divided by the number of entries of {P} instead of {B}{where}
    A / B => A / W ## {A} is divided by {W} instead of {B}{where}
    A / B => B / A ## the numerator and the denominator are exchanged{where}
    A / B => A / np.sqrt(B) ## the square root of {B} is the divisor{where}, instead of {B} itself
    A * V => A * np.sqrt(V) ## the square root of {V} is used{where}: the factor is {V} itself
    V * B => np.sqrt(V) * B ## the square root of {V} is used{where}: the factor is {V} itself
    A * V => A * np.abs(V) ## the absolute value of {V} is used{where}: its sign counts
    V * B => np.abs(V) * B ## the absolute value of {V} is used{where}: its sign counts

    # derivatives
    A * V * (1 - V) => A * (1 - V**2) ## the derivative of tanh is used for {V}, which is a sigmoid{where}
    V * (1 - V) => 1 - V**2 ## the derivative of tanh is used for {V}, which is a sigmoid{where}
    => 1 / (1 + np.exp(-V)) * (1 - 1 / (1 + np.exp(-V)))
        ## the sigmoid is applied to {V}, which is one already{where}
    A * V * (1 - V) => A / (1 + np.exp(-V)) * (1 - 1 / (1 + np.exp(-V)))
        && A * (1 - V**2) => A * (1 - np.tanh(V) ** 2)
        ## sigmoid or tanh is applied to {V}, which is its result already
    1 - V**2 => V * (1 - V) ## the derivative of the sigmoid is used for {V}, which is a tanh{where}
    => (1 - V) ** 2 ## the derivative of tanh is 1 - {V}², and not (1 - {V})²{where}
    => 1 - np.tanh(V) ** 2 ## tanh is applied to {V} once more{where}: its derivative is 1 - {V}²
    X.softmax_backward(A, B) => B * A ## {F} is replaced by a product{where}: the sum over the row is left out
    => B * (1 - B) * A ## {F} is replaced by {B} (1 - {B}){where}: the other entries of the row count too
    => A - B * A.sum(-1, keepdims=True)
        ## the backward pass of log-softmax is used instead of that of softmax{where}
    => X.softmax_backward(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)
        ## the softmax runs over the wrong axis in its backward pass{where}

    # terms
    A + B => A - B ## the term {B} has the wrong sign{where}
    A + B => B - A ## the term {A} has the wrong sign{where}
    A - B => A + B ## the term {B} has the wrong sign{where}
    A - B => -A - B ## the term {A} has the wrong sign{where}
    A + B => A + B + B ## the term {B} is counted twice{where}
    A + B => A + A + B ## the term {A} is counted twice{where}
    A - B => A - B - B ## the term {B} is counted twice{where}
    A + B => A + B / 2 ## the term {B} is halved{where}
    A - B => A - B / 2 ## the term {B} is halved{where}
    A + B + X => (A + B + X) / 3 ## the three terms are averaged{where} instead of summed
    A + B => A * B ## {A} and {B} are multiplied{where} instead of added
    A - B => A * B ## {A} and {B} are multiplied{where} instead of subtracted
    A * (B + X) => A * B + X
        ## the parentheses are wrong{where}: {A} multiplies only {B}, and not the whole sum
    A * (B - X) => A * B - X
        ## the parentheses are wrong{where}: {A} multiplies only {B}, and not the whole sum
    (A + B) * X => A + B * X
        ## the parentheses are wrong{where}: {X} multiplies only {B}, and not the whole sum
    (A - B) * X => A - B * X
        ## the parentheses are wrong{where}: {X} multiplies only {B}, and not the whole sum
    (A + B) / X => A + B / X ## the parentheses are wrong{where}: {X} divides only {B}, and not the whole sum
    (A - B) / X => A - B / X ## the parentheses are wrong{where}: {X} divides only {B}, and not the whole sum
    A.mean(*R) => A.max(*R) ## the largest entry of {A} is used instead of the mean{where}
    A.sum(*R) => A.max(*R) ## the largest entry of {A} is used instead of the sum{where}
    A.max(*R) => A.min(*R) ## the smallest entry of {A} is used instead of the largest{where}
    A.max(*R) => A.mean(*R) ## the mean of {A} is used instead of its largest entry{where}
    np.sqrt(A) + B => np.sqrt(A + B) ## {B} is added to {A} under the square root{where}: add it to the root
    np.sqrt(A + B) => np.sqrt(A) + B
        ## {B} is added outside the square root{where}: add it to {A} under the root
    A**B => A**-B ## the sign of the power of {A} is wrong{where}
    """
    + "".join(
        rf"""
    A**B => A**{power} ## the power of {{A}} is {power} instead of {{B}}{{where}}"""
        for power in (-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2, 3)
    )
    + r"""
    -A => A ## the sign is left out{where}
    result = A => result = -A ## the sign of {result} is wrong

    # statements
    A += B => A = B ## {A} is overwritten (=) instead of added (+=)
    A += B => A -= B ## the sign of the step that changes {A} is wrong
    A -= B => A += B ## the sign of the step that changes {A} is wrong
    A += B => A += 2 * B ## {A} is changed twice
    A += B => pass ## the step that changes {A} is left out
    A -= B => pass ## the step that changes {A} is left out
    A *= B => pass ## the step that changes {A} is left out
    np.add.at(A, B, X) => A[B] = X
        ## a row whose index occurs several times keeps only one gradient, because it is overwritten
    => A[B] += X
        ## a row whose index occurs several times keeps only one gradient, because table[ids] += adds once
    A = F(*R) => if True: F(*R); A = F(*R) ## {F} is called twice
    A = B + F(*R) => if True: F(*R); A = B + F(*R) ## {F} is called twice
    return F(*R) => if True: F(*R); return F(*R) ## {F} is called twice
    return B + F(*R) => if True: F(*R); return B + F(*R) ## {F} is called twice
    F(*R) => pass ## the call of {F} is left out
    A, B = F(X, *R) => A, B = X, X ## {F} is left out{where}: {X} is used directly
    if A: S => pass ## the case in which {A} is left out
    => if True: S ## the case in which {A} is taken always

    # calls
    X.softmax(A)[0] => X.softmax(X.softmax(A)[0])[0] ## the softmax is applied twice{where}
    => X.softmax(A.swapaxes(-1, -2))[0].swapaxes(-1, -2) ## the softmax runs over the wrong axis{where}
    np.where(A, B, X) => B ## the condition {A} is left out{where}: {B} is used for all entries
    np.where(A, B, X) => A ## {B} is left out{where}: {A} itself is used
    np.where(A, B, X) => np.where(A, X, B)
        ## the condition {A} is reversed{where}: the two cases are exchanged
    => np.where(A, B, -B) ## the entries that are not selected are -{B} instead of {X}{where}
    => np.where(A, B, 1) ## the entries that are not selected are 1 instead of {X}{where}
    => np.where(A, B, NUMBER) ## the entries that are not selected are NUMBER instead of {X}{where}
    => np.where(A, B, -np.inf) ## the entries that are not selected are -inf instead of {X}{where}
    => np.where(A, B, NUMBER * B) ## the entries that are not selected are NUMBER {B} instead of {X}{where}
    F(A, *R)[0] => A ## {F} is left out{where}: {A} is used directly
    F(*Q, A, *R) => A ## {F} is left out{where}: {A} is used directly
    F(A, *R) => F(F(A, *R), *R) ## {F} is applied twice{where}
    F(A, B) => F(B, A) ## the two arguments of {F} are exchanged{where}: {A} and {B}
    F(*Q, V, *S, W, *R) => F(*Q, W, *S, V, *R) ## {V} and {W} are exchanged{where}
    [*Q, A, *S, B, *R] => [*Q, B, *S, A, *R] ## {A} and {B} are exchanged{where}
    (*Q, A, *S, B, *R) => (*Q, B, *S, A, *R) ## {A} and {B} are exchanged{where}
    F(*Q, V, *R) => F(*Q, None, *R) ## {V} is not passed to {F}
    X.backward(A, *R) => A @ X.weight.value.T
        ## {X}.backward is replaced by a product with the weight: its parameters get no gradients
    np.concatenate([A, B], *R) => A ## {B} is not appended{where}
    np.concatenate([A, B], *R) => B ## {B} is not appended to {A}{where}: only {B} is used
    np.concatenate([A, B], *R) => A + B ## {B} is added to {A}{where} instead of appended
    (X[..., :A], X[..., A:]) => (X[..., 0::2], X[..., 1::2])
        ## the pairs are neighbours in {X}: they must be the numbers with the same place in the two halves
    => (X[..., :A], X[..., : A - 1 : -1]) ## the second half of {X} is used in the reverse order{where}
    (X[..., 0::2], X[..., 1::2]) => (X[..., : X.shape[-1] // 2], X[..., X.shape[-1] // 2 :])
        ## the pairs are the two halves of {X}: they must be neighbours
    A.T => A ## the axes of {A} are not swapped{where}: it is not transposed
    A.swapaxes(*R) => A ## the axes of {A} are not swapped{where}: it is not transposed
    min(A, B) => max(A, B) ## max is used instead of min{where}
    np.sin(A) => np.cos(A) ## cos is used instead of sin{where}
    np.cos(A) => np.sin(A) ## sin is used instead of cos{where}
    math.cos(A) => math.sin(A) ## sin is used instead of cos{where}
    np.exp(A) => np.exp2(A) ## powers of 2 are used instead of exp{where}
    np.log(A) => np.log2(A) ## the logarithm has base 2 instead of base e{where}

    # conditions and numbers
    """
    + "".join(
        rf"""
    A {sign} B => A {other} B ## the comparison {{A}} {sign} {{B}} is {wrong}: {other} is used"""
        for sign, others in SIGNS.items()
        for other, wrong in zip(others.split(), (EQUALITY, "reversed", *["wrong"] * 3), strict=True)
    )
    + "".join(
        rf"""
    V {sign} B => W {sign} B ## the condition looks at {{W}} instead of {{V}}: {{V}} {sign} {{B}} decides"""
        for sign in SIGNS
    )
    + r"""
    A is not None => A ## {A} of 0 is treated like None: compare with `is not None`
    A & B => A ## the condition {B} is left out{where}
    A & B => B ## the condition {A} is left out{where}
    A & B => A | B ## both conditions must hold{where}: & is replaced by |
    ~A => A ## the condition is reversed{where}: ~ is left out
    A < B => A < B + 1 ## the limit is one too large: {A} < {B}
    A < B => A < B - 1 ## the limit is one too small: {A} < {B}
    A <= B => A <= B + 1 ## the limit is one too large: {A} <= {B}
    A <= B => A <= B - 1 ## the limit is one too small: {A} <= {B}
    A <= B => A <= 2 * B ## the limit is twice as large as it should be{where}
    A < B => A < 2 * B ## the limit is twice as large as it should be{where}
    A <= B => 2 * A <= B ## the limit is half as large as it should be{where}
    A < B => 2 * A < B ## the limit is half as large as it should be{where}
    X[: A] => X[-A :] ## the last entries of {X} are used instead of the first{where}
    X[: A] => X[: A + 1] ## the part of {X} ends one too late{where}: it ends before {A}
    X[: A] => X[: A - 1] ## the part of {X} ends one too early{where}: it ends before {A}
    X[A:B] => X[A + 1 : B + 1] ## the part of {X} begins and ends one too late{where}
    X[A:B] => X[A - 1 : B - 1] ## the part of {X} begins and ends one too early{where}
    X[A:B] => X ## all of {X} is used{where}, instead of a part
    X[: A] => X ## all of {X} is used{where}, instead of a part
    X[::-1] => X ## all of {X} is used{where} in its order, and not reversed
    X[::-1] => X[:0:-1] ## the first of {X} is left out{where}
    X[::-1] => X[-2::-1] ## the last of {X} is left out{where}
    np.arange(A) => np.arange(1, A + 1) ## the numbers begin with 1 instead of 0{where}
    np.arange(A) => np.arange(-1, A - 1) ## the numbers begin with -1 instead of 0{where}
    range(A) => range(1, A) ## the first number of a range, 0, is left out{where}
    range(A) => range(A - 1) ## the last number of a range, {A} - 1, is left out{where}
    C => NUMBER ## NUMBER is used instead of {C}{where}
    C => C + 1 ## the number {C} is needed{where}: one more is used
    C => C - 1 ## the number {C} is needed{where}: one less is used

    # names
    A = F(*R) => F(*R) ## the result of {F} is not used
    V => W ## {result} is computed from {W} instead of {V}
    V[B] => W ## {result} is computed from {W} instead of {V}
    V => -V ## the sign of {V} is wrong{where}
    V => np.abs(V) ## the absolute value of {V} is used{where}: its sign counts
    V => np.exp(V) ## exp is applied to {V}{where}, and should not be
    V => V[:1] ## the first of {V} is used for all{where}: each has its own
    V => V[-1:] ## the last of {V} is used for all{where}: each has its own
    V => V[::-1] ## {V} is used in the reverse order{where}
    P => 0 ## {P} is ignored{where}: 0 is used instead

    # whole values
    result = A => result = A / len(G) ## {result} is divided by the batch size: it must be a sum, not averaged
    => result = A / G.size
        ## {result} is divided by the number of entries of {G}: it must be a sum, not averaged
    => result = A / (G.size // G.shape[-1])
        ## {result} is divided by the number of rows: it must be a sum, not averaged
    => result = A / G.shape[-1]
        ## {result} is divided by the length of the last axis of {G}: it must be a sum, not averaged
    => result = A / G.shape[-2]
        ## {result} is divided by the length of the last axis but one of {G}: it must be a sum, not averaged
    => result = 2 * A ## {result} is twice as large as it should be: it is multiplied by 2
    => result = A / 2 ## {result} is half as large as it should be: it is divided by 2
    => result = W + A ## {W} is added to {result}: there is no such residual connection
    => result = A * W ## {result} is multiplied by {W}, a factor that should not be there
    => result = A / W ## {result} is divided by {W}, a divisor that should not be there
    => result = np.exp(A) ## exp is applied to {result}, and should not be
    => result = np.log(A) ## the logarithm is applied to {result}, and should not be
    => result = np.sqrt(A) ## the square root is applied to {result}, and should not be
    => result = np.abs(A) ## the absolute value is taken of {result}, and should not be
    => result = ~A ## {result} is the opposite: True and False are exchanged
    => result = A[::-1] ## {result} is in the reverse order
    """
)
