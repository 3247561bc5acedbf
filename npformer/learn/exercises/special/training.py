"""Chapter 13: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== adam-step adamw-step
adam.m / (1 - beta1**adam.t) => adam.m && adam.v / (1 - beta2**adam.t) => adam.v
    ## the bias correction is left out: m and v are used without the divisions by 1 - b1^t and 1 - b2^t
=> adam.m ## the bias correction of m, the division by 1 - b1^t, is left out
=> adam.m[...] = adam.m / (1 - beta1**adam.t) && adam.v / (1 - beta2**adam.t) => adam.v[...] = adam.v / (1 -
    beta2**adam.t) ## the corrected m_hat is stored in adam.m, and the corrected v_hat in adam.v: the next
    step needs m and v without the correction
=> adam.m[...] = adam.m / (1 - beta1**adam.t)
    ## the corrected m_hat is stored in adam.m: the next step needs m without the correction
=> adam.m && adam.v / (1 - beta2**adam.t) => adam.v && np.sqrt(v_hat) + adam.eps => np.sqrt(v_hat + adam.eps)
    ## the bias correction is left out, and eps is added under the square root
=> (beta1 * adam.m + (1 - beta1) * g) / (1 - beta1**adam.t)
    ## the next gradient is anticipated in m_hat, as in Nesterov's momentum (NAdam)
(1 - beta2) * g * g => (1 - beta2) * g ## the gradient is not squared in v
adam.v / (1 - beta2**adam.t) => adam.v ## the bias correction of v, the division by 1 - b2^t, is left out
=> adam.v[...] = adam.v / (1 - beta2**adam.t)
    ## the corrected v_hat is stored in adam.v: the next step needs v without the correction
adam.t += 1 => pass && adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps) => adam.model.values -=
    lr * m_hat / (np.sqrt(v_hat) + adam.eps)\n    adam.t += 1
    ## t is advanced too late: it is still 0 in the first step, after which it must be 1
=> pass && **adam.t => **max(adam.t, 1) && adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps) =>
    adam.model.values -= lr * m_hat / (np.sqrt(v_hat) + adam.eps)\n    adam.t += 1
    ## t is advanced too late: the division by 1 - b^t uses the number of the step before
=> pass && **adam.t => **(adam.t + 1)
    ## adam.t is not advanced: t + 1 is used in the bias correction only, so the next step finds the old t
=> m, v = adam.m.copy(), adam.v.copy()\n    adam.t += 1 && adam.m / (1 - beta1**adam.t) => m / (1 -
    beta1**adam.t) && adam.v / (1 - beta2**adam.t) => v / (1 - beta2**adam.t)
    ## the moments of the step before are used: m and v must be updated first
=> v = adam.v.copy()\n    adam.t += 1 && adam.v / (1 - beta2**adam.t) => v / (1 - beta2**adam.t)
    ## the v of the step before is used: it must be updated first
=> m = adam.m.copy()\n    adam.t += 1 && adam.m / (1 - beta1**adam.t) => m / (1 - beta1**adam.t)
    ## the m of the step before is used: it must be updated first
=> g = g / np.linalg.norm(g)\n    adam.t += 1
    ## the gradient is divided by its norm first: Adam uses it as it is
1 - beta1**adam.t => (1 - beta1)**adam.t && 1 - beta2**adam.t => (1 - beta2)**adam.t
    ## (1 - b)^t is used instead of 1 - b^t
=> 1 - beta_2**adam.t && 1 - beta2**adam.t => 1 - beta1**adam.t && beta_2 => beta2
    ## b1 and b2 are exchanged in the bias corrections
np.sqrt(v_hat) + adam.eps => np.sqrt(v_hat + adam.eps)
    ## eps is added to v under the square root, and must be added to the root
g * g => np.abs(g) ## the absolute value of the gradient stands in v instead of its square
beta1 * adam.m + (1 - beta1) * g => (1 - beta1) * adam.m + beta1 * g ## b1 and 1 - b1 are exchanged in m
beta2 * adam.v + (1 - beta2) * g => (1 - beta2) * adam.v + beta2 * g ## b2 and 1 - b2 are exchanged in v
**adam.t => *adam.t ## the power b1^t is a product b1 · t, and so is b2^t
=> **(adam.t + 1) ## t is one too large in the bias correction
(1 - beta2) * g * g => (1 - beta2) * (adam.m / (1 - beta1**adam.t)) ** 2
    ## v is computed from the corrected m_hat² instead of g²: it is the mean of the squared gradients
=> (1 - beta2) * adam.m**2 ## v is computed from m² instead of g²: it is the mean of the squared gradients
=> (1 - beta2) * (g - adam.m) ** 2 ## v is computed from (g - m)², as in AdaBelief: it is the mean of g²
=> (1 - beta2) * (g * g).mean() ## all parameters share one v: each parameter has its own
=> (1 - beta2) * (g * g).sum()
    ## all parameters share one v, the sum of the squares of all gradients: each parameter has its own
beta2 * adam.v + (1 - beta2) * g * g => adam.v + g * g
    ## v is the sum of all squared gradients, as in AdaGrad: it is a moving mean
lr * m_hat / (np.sqrt(v_hat) + adam.eps) => lr * m_hat / np.sqrt(v_hat) + adam.eps
    ## the parentheses are wrong: eps is added to the quotient, and must be added to the root of v
lr * m_hat => lr / np.sqrt(adam.t) * m_hat ## the learning rate is divided by the root of t
m_hat / (np.sqrt(v_hat) + adam.eps) => np.sign(g)
    ## the sign of the gradient is used instead of m_hat over the root of v
(1 - beta1) * g => g && (1 - beta2) * g * g => g * g ## the factors 1 - b1 and 1 - b2 are left out in m and v
=== adam-step
(1 - beta1) * g => g ## the factor 1 - b1 of the gradient is left out in m
=== warmup
= step => = (step + 1) ## the steps are counted from 0: the learning rate is that of the step after
increase = step => increase = (step - 1) && = step** => = max(step - 1, 1e-9)**
    ## the learning rate is that of the step before: it comes one step too late
step**-0.5 => warmup_steps**-0.5
    ## after the warmup the learning rate stays constant: step^-0.5 is replaced by warmup_steps^-0.5
=> ((step - warmup_steps + 1)**-0.5 if step >= warmup_steps else 1e9)
    ## the decrease counts the steps from the end of the warmup: step^-0.5 must count all steps
min(decrease, increase) => increase
    ## the decrease after the warmup is left out: the learning rate rises for ever
=> min(decrease, step) * warmup_steps**-1.5
    ## warmup_steps^-1.5 multiplies the min: it belongs to its second argument
=> decrease * increase ## the two arguments of min are multiplied
=> (decrease + increase) ## the two arguments of min are added
=> (decrease + increase) / 2 ## the two arguments of min are averaged
=> max(step, warmup_steps) ** -0.5
    ## the learning rate is constant in the warmup, as max(step, warmup_steps)^-0.5: it must rise there
=> min(step, warmup_steps) ** -0.5
    ## the smaller one of step and warmup_steps has the power -0.5: compare the two arguments of min
factor * d_model**-0.5 * min(decrease, increase) => min(factor * d_model**-0.5 * decrease, increase)
    ## factor and d_model^-0.5 multiply only the first argument of min: they must multiply the min
=> min(decrease, factor * d_model**-0.5 * increase)
    ## factor and d_model^-0.5 multiply only the second argument of min: they must multiply the min
=> d_model**-0.5 * min(factor * decrease, increase)
    ## factor multiplies only the first argument of min: it must multiply the min
=> d_model**-0.5 * min(decrease, factor * increase)
    ## factor multiplies only the second argument of min: it must multiply the min
=> factor + d_model**-0.5 * min(decrease, increase) ## factor is added: it must multiply the learning rate
d_model**-0.5 * min(decrease, increase) => min(d_model**-0.5 * decrease, increase)
    ## d_model^-0.5 multiplies only the first argument of min: it must multiply the min
=> min(decrease, d_model**-0.5 * increase)
    ## d_model^-0.5 multiplies only the second argument of min: it must multiply the min
step * warmup_steps**-1.5 => (step * warmup_steps) ** -1.5
    ## step is in the power too: only warmup_steps has the power -1.5
=== cosine-schedule cosine-floor
min(1.0, (step - warmup_steps) / (total_steps - warmup_steps)) => (step - warmup_steps) / (total_steps -
    warmup_steps) ## the learning rate increases again after total_steps: limit done to at most 1
=> ((step - warmup_steps) / (total_steps - warmup_steps)) % 1
    ## the cosine begins again after total_steps (a restart): the learning rate stays at its last value
1 + math => 1 - math ## the sign of the cosine is wrong
(1 + math.cos(math.pi * done)) / 2 => math.cos(math.pi * done)
    ## the cosine is not moved up by 1: the learning rate falls too far
=> math.cos(math.pi / 2 * done) ## the cosine runs through a quarter of a period, and is not moved up by 1
=> (1 - done) ## the decrease is linear instead of a cosine
=> (1 + math.cos(math.pi * done) / 2) ## the parentheses are wrong: only the cosine is divided by 2
=> math.exp(-done) ## the decrease is exponential instead of a cosine
=> abs(math.cos(math.pi * done))
    ## the absolute value of the cosine is used: it must be moved up by 1 and halved
=> max(0.0, math.cos(math.pi * done))
    ## negative values of the cosine are set to 0: it must be moved up by 1 and halved
(step - warmup_steps) / (total_steps - warmup_steps) => step / total_steps
    ## warmup_steps is ignored in the second part: done must be 0 at warmup_steps
math.pi * done => 2 * math.pi * done ## the cosine runs through a whole period, 2 pi, instead of half a period
=> 180 * done ## the angle is in degrees: math.cos takes radians
peak * step / warmup_steps => peak ## there is no warmup: the learning rate is peak from the first step
=> peak * (step - 1) / warmup_steps ## the warmup comes one step too late: it counts from step - 1
=> peak * (step + 1) / warmup_steps ## the warmup is one step too early: it counts from step + 1
=> peak * (1 - math.cos(math.pi * step / warmup_steps)) / 2
    ## the warmup has the form of a cosine too: it must be linear
(step - warmup_steps) / => (step - warmup_steps - 1) / ## the decrease comes one step too late
return peak * step / warmup_steps => return peak * step / warmup_steps * (1 + math.cos(math.pi * step /
    total_steps)) / 2
    ## the warmup multiplies a cosine that begins at step 0: the cosine begins at warmup_steps
=> return peak * step / warmup_steps * (1 + math.cos(math.pi * step / total_steps)) / 2 && (step -
    warmup_steps) / (total_steps - warmup_steps) => step / total_steps ## the warmup multiplies a cosine that
    begins at step 0, and this cosine continues after it: the cosine begins at warmup_steps
=== cosine-schedule
peak * step / warmup_steps => step / warmup_steps && return peak * (1 => return (1
    ## peak is left out in both parts
done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps)) => done = (step - warmup_steps) /
    (total_steps - warmup_steps)\n        if done > 1:\n            return peak
    ## after total_steps the learning rate is peak: it stays 0
=== clip-gradient
math.sqrt((grads**2).sum()) => np.abs(grads).sum()
    ## the sum of the absolute values is used instead of the Euclidean norm
=> abs(grads.sum()) ## the norm is the root of the square of the sum: square each entry before the sum
grads *= max_norm / norm => np.clip(grads, -max_norm, max_norm, out=grads) ## every entry is clipped
    separately, which changes the direction: all must be multiplied by the same number
=> pass ## the gradient is not changed: is the result stored in a new array instead of changed in place (*=)?
=> grads[grads > max_norm] = max_norm
    ## only entries above max_norm are clipped: all entries must be multiplied by the same number
=> grads[abs(grads) > max_norm] = 0
    ## entries whose absolute value is above max_norm are set to 0: all must be multiplied by the same number
=> grads -= norm - max_norm ## the excess of the norm is subtracted: the entries must be multiplied
=> grads /= norm - max_norm
    ## the gradient is divided by the norm minus max_norm: it must be multiplied by their quotient
=> grads[:] = max_norm ## every entry of the gradient is replaced by max_norm: the direction must remain
norm > max_norm => True && grads *= max_norm / norm => np.clip(grads, -max_norm, max_norm, out=grads) ## every
    entry is clipped separately, which changes the direction: all must be multiplied by the same number
max_norm / norm => 1 / norm ## max_norm is left out: the gradient is scaled to the norm 1
=> (max_norm / norm) ** 2 ## the gradient is scaled twice
=> max_norm / (norm + NUMBER) ## a small number is added to the norm, as in PyTorch: divide by the norm itself
return norm => return min(norm, max_norm) ## the norm after scaling is returned, and must be the norm before
=> return norm**2 ## the square of the norm is returned
=> return min(1.0, max_norm / norm) ## the scale is returned: the norm before scaling must be returned
"""
