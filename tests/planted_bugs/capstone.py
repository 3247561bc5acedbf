"""Bugs in the capstone: the Transformer that is assembled from the learner's functions, and its training."""

from planted_bugs.bug import Bug

_ASSEMBLE = "learn/capstone/assemble.py"
_FUNCTIONS = "learn/capstone/functions.py"
_COMPARE = "learn/capstone/compare.py"
_TRAINING = "learn/capstone/training.py"

ASSEMBLED = (
    Bug(
        "capstone: gradient of the table lost",
        "dropped branch",
        _ASSEMBLE,
        "self.weight.accumulate(self.functions.embedding_backward(dy, cache))",
        "self.functions.embedding_backward(dy, cache)",
    ),
    Bug(
        "capstone: heads split by the wrong number",
        "transposed",
        _ASSEMBLE,
        "self.functions.split_heads(y, self.n_heads)",
        "self.functions.split_heads(y, self.n_heads * 2)",
    ),
    Bug(
        "capstone: gradients of queries and keys swapped",
        "swapped",
        _ASSEMBLE,
        "(dq, dk, dv), cache.projections, strict=True",
        "(dk, dq, dv), cache.projections, strict=True",
    ),
    Bug(
        "capstone: gradients of a norm swapped",
        "swapped",
        _ASSEMBLE,
        "(dgain, dbias), strict",
        "(dbias, dgain), strict",
    ),
    Bug(
        "capstone: norm cache without eps",
        "wrong term",
        _ASSEMBLE,
        "(centered * centered).mean(-1, keepdims=True) + self.eps",
        "(centered * centered).mean(-1, keepdims=True) + 0.1",
    ),
    Bug(
        "capstone: gradient of the memory lost",
        "dropped branch",
        _ASSEMBLE,
        "others[:] = gradients[1:]",
        "others[:] = [0 * each for each in gradients[1:]]",
    ),
    Bug(
        "capstone: padding of the target not masked",
        "wrong mask",
        _ASSEMBLE,
        "target_mask = self.functions.padding_mask(target_in) & causal",
        "target_mask = causal | self.functions.padding_mask(target_in)",
    ),
    Bug(
        "capstone: loss counts padding",
        "wrong mask",
        _ASSEMBLE,
        "real = (targets.reshape(-1) != PAD)",
        "real = (targets.reshape(-1) != -1)",
    ),
)

BOUND = (
    Bug(
        "capstone: attention computes with the package's softmax",
        "lost tie",
        _FUNCTIONS,
        "namespace[name] = bound.get(id(value), value)",
        "namespace[name] = value",
    ),
    Bug(
        "capstone: attention weights found without the scale",
        "missing scale",
        _FUNCTIONS,
        "weights, None, masking, 1 / math.sqrt(q.shape[-1]))",
        "weights, None, masking, 1.0)",
    ),
    Bug(
        "capstone: every part is the package's",
        "lost tie",
        _FUNCTIONS,
        "take = _run_file if part.name in own else _copy_package",
        "take = _copy_package",
    ),
    Bug(
        "capstone: Adam is compared with equal gradients only",
        "dropped branch",
        _COMPARE,
        "results |= _named(seed, model, logits, loss, sentences)\n"
        '        results[f"the parameters after two steps of Adam (seed {seed})"] = _after_two_steps(\n'
        "            model, partial(functions.adam_step, adam, 0.01)\n        )",
        "results |= _named(seed, model, logits, loss, sentences)\n"
        '        results[f"the parameters after two steps of Adam (seed {seed})"] = _after_two_steps(\n'
        "            model, partial(adam.step, 0.01)\n        )",
    ),
    Bug(
        "capstone: gradients are not compared",
        "dropped branch",
        _COMPARE,
        "compare(name, value, found[name], who",
        "name.startswith(GRADIENT) or compare(name, value, found[name], who",
    ),
)

TRAINED = (
    Bug("capstone: gradients accumulate over steps", "= for +=", _TRAINING, "model.zero_grad()", "pass"),
    Bug(
        "capstone: one batch for all steps",
        "wrong term",
        _TRAINING,
        "default_rng(step).choice",
        "default_rng(1).choice",
    ),
    Bug(
        "capstone: learning rate of the first step",
        "wrong term",
        _TRAINING,
        "max(1, steps // 10))(step)",
        "max(1, steps // 10))(1)",
    ),
    Bug(
        "capstone: moments of Adam lost between rounds",
        "lost tie",
        _TRAINING,
        'adam.m[...], adam.v[...], adam.t = tensors["m"], tensors["v"], settings["step"]',
        'adam.t = settings["step"]',
    ),
    Bug(
        "capstone: Adam counts from 0 in each round",
        "wrong term",
        _TRAINING,
        'tensors["m"], tensors["v"], settings["step"]',
        'tensors["m"], tensors["v"], 0',
    ),
    Bug(
        "capstone: long sentences in training",
        "wrong term",
        _TRAINING,
        "if len(pair[0]) <= WORDS]",
        "if len(pair[0]) <= WORDS + 1]",
    ),
    Bug(
        "capstone: the score is that of sentences of the training",
        "wrong term",
        _TRAINING,
        "pairs = [pair for pair in builtin_corpus().test if",
        "pairs = [pair for pair in builtin_corpus().train if",
    ),
    Bug(
        "capstone: a file of another training is accepted",
        "dropped branch",
        "learn/capstone/saved.py",
        "if not _is_possible(saved):",
        "if False:",
    ),
)

CAPSTONE = (*ASSEMBLED, *BOUND, *TRAINED)
