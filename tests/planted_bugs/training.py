"""Bugs around the backward passes: gradient buffers, Adam, clipping, schedules."""

BUGS = {
    "nn/module.py": {
        "self.stored[...] = 0": [("zero_grad: does nothing", "= for +=", "pass")],
        "for parameter in self._late_parameters():": [
            ("zero_grad: leaves out the first", "dropped branch", "parameters() → parameters()[1:]"),
        ],
        "        self.is_zero = False\n        return self.stored": [
            ("accumulate: overwrites what a user wrote", "= for +=", "        return self.stored"),
        ],
        "is_zero, grad = self.is_zero, self.grad": [
            (
                "accumulate: a second product overwrites the first",
                "= for +=",
                "is_zero, grad = True, self.grad",
            ),
        ],
        "id(child) not in seen:": [
            ("named_parameters: a tied parameter twice", "lost tie", "prefix + name not in seen:"),
        ],
    },
    "nn/flat.py": {
        "part[...] = parameter.value\n": [
            ("flatten: values that lie apart are not copied", "lost tie", "pass\n"),
        ],
        "self.grads[...] = 0": [("zero_grad: a flattened model keeps its gradients", "= for +=", "pass")],
        "if parameter.stored is not view:": [
            ("zero_grad: leaves out an assigned gradient", "dropped branch", "if False:"),
        ],
        "if flat.seen != Flat.changes:": [
            ("zero_grad: leaves out a layer that was added", "dropped branch", "if flat.seen < 0:"),
        ],
        "parameter.stored = part\n": [
            ("flatten: gradients outside their array", "lost tie", "parameter.stored = part.copy()\n"),
        ],
        "replica._flat = Flat(replica.parameters(), self.values)": [
            ("replicate: the flat arrays are shared", "lost tie", "replica._flat = self._flat"),
            ("replicate: values copied", "lost tie", "self.values → self.values.copy()"),
        ],
        "parameter.stored, parameter.is_zero = None, True\n        return copied": [
            (
                "replicate: starts from the gradients so far",
                "wrong term",
                "None, True → parameter.stored, False",
            ),
        ],
    },
    "functional/adam.py": {
        "values -= lr * m_hat / (xp.sqrt(v_hat) + eps)": [
            ("Adam: sign", "sign", "values += lr * m_hat / (xp.sqrt(v_hat) + eps)"),
            ("Adam: eps inside the root", "wrong term", "values -= lr * m_hat / xp.sqrt(v_hat + eps)"),
            ("Adam: eps left out", "dropped branch", "values -= lr * m_hat / xp.sqrt(v_hat)"),
            ("Adam: root left out", "missing scale", "values -= lr * m_hat / (v_hat + eps)"),
        ],
        "m_hat = m / (1 - beta1**t)": [("Adam: mean not corrected", "missing scale", "m_hat = m")],
        "v_hat = v / (1 - beta2**t)": [("Adam: squares not corrected", "missing scale", "v_hat = v")],
        "beta1, beta2 = betas": [("Adam: betas swapped", "swapped", "beta2, beta1 = betas")],
        "m += (1 - beta1) * (grads - m)": [
            ("Adam: mean overwritten", "= for +=", "m = (1 - beta1) * (grads - m)"),
            ("Adam: mean does not decay", "dropped branch", "m += (1 - beta1) * grads"),
        ],
        "v += (1 - beta2) * (grads * grads - v)": [
            ("Adam: squares do not decay", "dropped branch", "v += (1 - beta2) * (grads * grads)"),
            ("Adam: gradient not squared", "missing scale", "v += (1 - beta2) * (abs(grads) - v)"),
        ],
        "values *= 1 - lr * weight_decay": [
            ("AdamW: weights grow", "sign", "values *= 1 + lr * weight_decay"),
            ("AdamW: learning rate left out", "missing scale", "values *= 1 - weight_decay"),
            ("AdamW: decay of a copy", "lost tie", "values = values * (1 - lr * weight_decay)"),
        ],
    },
    "training/optimizer.py": {
        "self.t += 1": [
            ("Adam: t counted twice", "wrong term", "self.t += 2"),
            ("Adam: t stays 1", "= for +=", "self.t = 1"),
        ],
        "len(parameter.shape) > 1": [("AdamW: gains and biases decay too", "wrong mask", "True")],
        "slice(max(start, part.start), min(end, part.stop))": [
            ("AdamW: each worker decays the whole ranges", "wrong mask", "slice(start, end)"),
        ],
        "start, _ = ranges.pop()": [("AdamW: ranges of neighbours lost", "dropped branch", "ranges.pop()")],
        "grads *= max_norm / norm": [
            ("clip: inverted ratio", "swapped", "grads *= norm / max_norm"),
            ("clip: scales a copy", "lost tie", "grads = grads * (max_norm / norm)"),
            ("clip: not to max_norm", "missing scale", "grads /= norm"),
        ],
        "if norm > max_norm:": [("clip: small gradients too", "wrong mask", "if norm > 0:")],
        "return math.sqrt(float(array_module(grads).vdot(grads, grads)))": [
            ("global_norm: no root", "missing scale", "return float(array_module(grads).vdot(grads, grads))"),
        ],
        "factor * d_model**-0.5": [("warmup: d^.5", "sign", "factor * d_model**0.5")],
        "step * warmup_steps**-1.5": [("warmup: w^-.5", "wrong term", "step * warmup_steps**-0.5")],
        "min(step**-0.5,": [("warmup: the larger of the two", "swapped", "max(step**-0.5,")],
        "factor * d_model": [("warmup: factor left out", "missing scale", "d_model")],
        "(1 + math.cos(math.pi * min(1.0, done))) / 2": [
            ("cosine: not halved", "missing scale", "(1 + math.cos(math.pi * min(1.0, done)))"),
        ],
        "math.cos(math.pi * min(1.0, done))": [
            ("cosine: rises again", "dropped branch", "math.cos(math.pi * done)"),
        ],
        "floor + (peak - floor)": [
            ("cosine: floor added to the peak", "wrong term", "floor + peak"),
            ("cosine: floor left out", "dropped branch", "peak"),
        ],
        "if step < warmup_steps:": [("cosine: warmup left out", "dropped branch", "if False:")],
    },
    "training/consistency.py": {
        "difference = d1 - d2": [("R-Drop: sign", "sign", "difference = d2 - d1")],
        "difference *= alpha": [("R-Drop: weight left out", "missing scale", "pass")],
        "d2 -= difference": [
            ("R-Drop: second pass left out", "dropped branch", "pass"),
            ("R-Drop: second pass moves away", "sign", "d2 += difference"),
        ],
    },
    "training/step.py": {
        "2 * tokens if r_drop else tokens": [
            ("R-Drop: the gradient of the sum of both passes", "missing scale", "tokens"),
        ],
    },
}
