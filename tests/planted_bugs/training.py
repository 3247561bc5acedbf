"""Bugs around the backward passes: gradient buffers, Adam, clipping, schedules."""

BUGS = {
    "nn/module.py": {
        "self.stored[...] = 0": {"zero_grad: does nothing": "pass"},
        "for parameter in self._late_parameters():": {
            "zero_grad: leaves out the first": "parameters() → parameters()[1:]"
        },
        "        self.is_zero = False\n        return self.stored": {
            "accumulate: overwrites what a user wrote": "        return self.stored"
        },
        "is_zero, grad = self.is_zero, self.grad": {
            "accumulate: a second product overwrites the first": "is_zero, grad = True, self.grad"
        },
        "id(child) not in seen:": {"named_parameters: a tied parameter twice": "prefix + name not in seen:"},
    },
    "nn/flat.py": {
        "part[...] = parameter.value\n": {"flatten: values that lie apart are not copied": "pass\n"},
        "self.grads[...] = 0": {"zero_grad: a flattened model keeps its gradients": "pass"},
        "if parameter.stored is not view:": {"zero_grad: leaves out an assigned gradient": "if False:"},
        "if flat.seen != Flat.changes:": {
            "zero_grad: leaves out a layer that was added": "if flat.seen < 0:"
        },
        "parameter.stored = part\n": {
            "flatten: gradients outside their array": "parameter.stored = part.copy()\n"
        },
        "replica._flat = Flat(replica.parameters(), self.values)": {
            "replicate: the flat arrays are shared": "replica._flat = self._flat",
            "replicate: values copied": "self.values → self.values.copy()",
        },
        "parameter.stored, parameter.is_zero = None, True\n        return copied": {
            "replicate: starts from the gradients so far": "None, True → parameter.stored, False"
        },
    },
    "functional/adam.py": {
        "values -= lr * m_hat / (xp.sqrt(v_hat) + eps)": {
            "Adam: sign": "values += lr * m_hat / (xp.sqrt(v_hat) + eps)",
            "Adam: eps inside the root": "values -= lr * m_hat / xp.sqrt(v_hat + eps)",
            "Adam: eps left out": "values -= lr * m_hat / xp.sqrt(v_hat)",
            "Adam: root left out": "values -= lr * m_hat / (v_hat + eps)",
        },
        "m_hat = m / (1 - beta1**t)": {"Adam: mean not corrected": "m_hat = m"},
        "v_hat = v / (1 - beta2**t)": {"Adam: squares not corrected": "v_hat = v"},
        "beta1, beta2 = betas": {"Adam: betas swapped": "beta2, beta1 = betas"},
        "m += (1 - beta1) * (grads - m)": {
            "Adam: mean overwritten": "m = (1 - beta1) * (grads - m)",
            "Adam: mean does not decay": "m += (1 - beta1) * grads",
        },
        "v += (1 - beta2) * (grads * grads - v)": {
            "Adam: squares do not decay": "v += (1 - beta2) * (grads * grads)",
            "Adam: gradient not squared": "v += (1 - beta2) * (abs(grads) - v)",
        },
        "values *= 1 - lr * weight_decay": {
            "AdamW: weights grow": "values *= 1 + lr * weight_decay",
            "AdamW: learning rate left out": "values *= 1 - weight_decay",
            "AdamW: decay of a copy": "values = values * (1 - lr * weight_decay)",
        },
    },
    "functional/muon.py": {
        "x = g.T if g.shape[0] > g.shape[1] else g": {"Muon: tall matrices stay": "x = g"},
        "x = x / (xp.sqrt((x * x).sum()) + 1e-7)": {"Muon: not scaled": "x = x + 0"},
        "gram = x @ x.T": {"Muon: gram of the columns' squares": "gram = (x * x).sum(1) * xp.eye(len(x))"},
        "b * gram + c * (gram @ gram)": {
            "Muon: b and c exchanged": "c * gram + b * (gram @ gram)",
            "Muon: fifth power left out": "b * gram",
        },
    },
    "training/optimizer.py": {
        "(self.momentum * m + (1 - self.momentum) * grad)": {
            "Muon: without Nesterov": "m",
            "Muon: without momentum": "grad",
        },
        "math.sqrt(max(update.shape))": {"Muon: the smaller side": "math.sqrt(min(update.shape))"},
        "parameter.widths or parameter.shape[1:]": {
            "Muon: matrices side by side are one": "parameter.shape[1:]"
        },
        "for both in _overlaps(self.adam_ranges, part):": {
            "Muon: Adam updates the matrices too": "for both in [part]:"
        },
        "len(parameter.shape) == 2 and not": {"Muon: takes gains and biases": "not"},
        "self.t += 1": {"Adam: t counted twice": "self.t += 2", "Adam: t stays 1": "self.t = 1"},
        "len(parameter.shape) > 1": {"AdamW: gains and biases decay too": "True"},
        "slice(max(start, part.start), min(end, part.stop))": {
            "AdamW: each worker decays the whole ranges": "slice(start, end)"
        },
        "start, _ = ranges.pop()": {"AdamW: ranges of neighbours lost": "ranges.pop()"},
        "grads *= max_norm / norm": {
            "clip: inverted ratio": "grads *= norm / max_norm",
            "clip: scales a copy": "grads = grads * (max_norm / norm)",
            "clip: not to max_norm": "grads /= norm",
        },
        "if norm > max_norm:": {"clip: small gradients too": "if norm > 0:"},
        "return math.sqrt(float(array_module(grads).vdot(grads, grads)))": {
            "global_norm: no root": "return float(array_module(grads).vdot(grads, grads))"
        },
        "factor * d_model**-0.5": {"warmup: d^.5": "factor * d_model**0.5"},
        "step * warmup_steps**-1.5": {"warmup: w^-.5": "step * warmup_steps**-0.5"},
        "min(step**-0.5,": {"warmup: the larger of the two": "max(step**-0.5,"},
        "factor * d_model": {"warmup: factor left out": "d_model"},
        "(1 + math.cos(math.pi * min(1.0, done))) / 2": {
            "cosine: not halved": "(1 + math.cos(math.pi * min(1.0, done)))"
        },
        "math.cos(math.pi * min(1.0, done))": {"cosine: rises again": "math.cos(math.pi * done)"},
        "floor + (peak - floor)": {
            "cosine: floor added to the peak": "floor + peak",
            "cosine: floor left out": "peak",
        },
        "if step < warmup_steps:": {"cosine: warmup left out": "if False:"},
    },
    "training/consistency.py": {
        "difference = d1 - d2": {"R-Drop: sign": "difference = d2 - d1"},
        "difference *= alpha": {"R-Drop: weight left out": "pass"},
        "d2 -= difference": {
            "R-Drop: second pass left out": "pass",
            "R-Drop: second pass moves away": "d2 += difference",
        },
    },
    "training/step.py": {
        "2 * tokens if r_drop else tokens": {"R-Drop: the gradient of the sum of both passes": "tokens"}
    },
}
