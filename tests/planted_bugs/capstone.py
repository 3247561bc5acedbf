"""Bugs in the capstone: the Transformer that is assembled from the learner's functions, and its training."""

BUGS = {
    "learn/capstone/assemble.py": {
        "self.weight.accumulate(self.functions.embedding_backward(dy, cache))": {
            "capstone: gradient of the table lost": "self.functions.embedding_backward(dy, cache)"
        },
        "self.functions.split_heads(y, self.n_heads)": {
            "capstone: heads split by the wrong number": "self.n_heads → self.n_heads * 2"
        },
        "(dq, dk, dv), cache.projections, strict=True": {
            "capstone: gradients of queries and keys swapped": "dq, dk → dk, dq"
        },
        "(dgain, dbias), strict": {"capstone: gradients of a norm swapped": "(dbias, dgain), strict"},
        "(centered * centered).mean(-1, keepdims=True) + self.eps": {
            "capstone: norm cache without eps": "self.eps → 0.1"
        },
        "dmemory.append(of_memory)": {
            "capstone: gradient of the memory lost": "dmemory.append(0 * of_memory)"
        },
        "target_mask = self.functions.padding_mask(target_in) & causal": {
            "capstone: padding of the target not masked": (
                "target_mask = causal | self.functions.padding_mask(target_in)"
            )
        },
        "real = (targets.reshape(-1) != PAD)": {
            "capstone: loss counts padding": "real = (targets.reshape(-1) != -1)"
        },
    },
    "learn/capstone/functions.py": {
        "namespace[name] = bound.get(id(value), value)": {
            "capstone: attention computes with the package's softmax": "namespace[name] = value"
        },
        "weights, None, None, 1 / math.sqrt(q.shape[-1]))": {
            "capstone: attention weights found without the scale": "weights, None, None, 1.0)"
        },
        "take = _run_file if part.name in own else _copy_package": {
            "capstone: every part is the package's": "take = _copy_package"
        },
    },
    "learn/capstone/compare.py": {
        "return partial(functions.adam_step, adam, 0.01)": {
            "capstone: Adam is compared with equal gradients only": "functions.adam_step, adam → adam.step"
        },
        "compare(_shown(name), value, found[name], who": {
            "capstone: gradients are not compared": "compare → name.startswith(GRADIENT) or compare"
        },
    },
    "learn/capstone/training.py": {
        "model.zero_grad()": {"capstone: gradients accumulate over steps": "pass"},
        "default_rng(step).choice": {"capstone: one batch for all steps": "step → 1"},
        "max(1, steps // 10))(step)": {
            "capstone: learning rate of the first step": "max(1, steps // 10))(1)"
        },
        'adam.m[...], adam.v[...], adam.t = tensors["m"], tensors["v"], settings["step"]': {
            "capstone: moments of Adam lost between rounds": 'adam.t = settings["step"]'
        },
        'tensors["m"], tensors["v"], settings["step"]': {
            "capstone: Adam counts from 0 in each round": 'tensors["m"], tensors["v"], 0'
        },
        "if len(pair[0]) <= WORDS]": {
            "capstone: long sentences in training": "if len(pair[0]) <= WORDS + 1]"
        },
        "pairs = [pair for pair in builtin_corpus().test if": {
            "capstone: the score is that of sentences of the training": "test if → train if"
        },
    },
    "learn/capstone/saved.py": {
        "if not _is_possible(saved):": {"capstone: a file of another training is accepted": "if False:"}
    },
}
