"""Bugs in what serves other people's models: their parts, saliency, and the check of their gradients."""

from planted_bugs.bug import Bug

_INPUTS = "pretrained/input_gradients.py"
_SALIENCY = "pretrained/saliency.py"
_LOSS = "pretrained/loss_check.py"
_MAPPED = "interop/mapped_tensors.py"
_MODEL = "models/transformer/model.py"
_ROTARY = "functional/rotary.py"
_WEIGHTS = "weights = np.concatenate([[0], length * weights / 2, [0]])"

PARTS = (
    Bug(
        "Transformer: a start symbol with the id of padding is masked",
        "wrong mask",
        _MODEL,
        "marked[:, 0] = self.config.end_id",
        "marked[:, 0] = self.config.pad_id",
    ),
    Bug(
        "Transformer: no padding is masked where the start symbol has its id",
        "wrong mask",
        _MODEL,
        "marked[:, 0] = self.config.end_id",
        "marked[:] = self.config.end_id",
    ),
    Bug(
        "BertEmbedding: vectors of segments not added",
        "dropped branch",
        "models/bert.py",
        "x = x + s\n",
        "x = x + 0 * s\n",
    ),
    Bug(
        "EncoderDecoder: gradients of source and target swapped",
        "swapped",
        "models/transformer/stacks.py",
        "return self.encoder.backward(dmemory, cache.encoder), dtarget",
        "return dtarget, self.encoder.backward(dmemory, cache.encoder)",
    ),
    Bug(
        "Llama3Scaling: angles multiplied by the factor",
        "missing scale",
        _ROTARY,
        "(share + (1 - share) / self.factor)",
        "(share + (1 - share) * self.factor)",
    ),
    Bug(
        "Llama3Scaling: radians taken for turns",
        "missing scale",
        _ROTARY,
        "turns = self.original_context * speeds / (2 * math.pi)",
        "turns = self.original_context * speeds",
    ),
    Bug(
        "Llama3Scaling: shares below 0 and above 1",
        "wrong term",
        _ROTARY,
        "share = np.clip((turns - self.low) / (self.high - self.low), 0, 1)",
        "share = (turns - self.low) / (self.high - self.low)",
    ),
    Bug(
        "RotaryPositions: angles not scaled",
        "dropped branch",
        "nn/positions.py",
        "rotary_table(np.arange(max_length), d_head, base, scaling)",
        "rotary_table(np.arange(max_length), d_head, base)",
    ),
)

INPUT_GRADIENTS = (
    Bug(
        "GivenVectors: sign",
        "sign",
        _INPUTS,
        "self.vectors.accumulate(dy)",
        "self.vectors.accumulate(-dy)",
    ),
    Bug(
        "GivenVectors: mean over the variants",
        "missing scale",
        _INPUTS,
        "self.vectors.accumulate(dy)",
        "self.vectors.accumulate(dy / len(dy))",
    ),
    Bug(
        "input gradients: the position before",
        "wrong term",
        _INPUTS,
        "dlogits[:, output.position] = drow",
        "dlogits[:, output.position - 1] = drow",
    ),
    Bug(
        "input gradients: those of the weights added to the model",
        "lost tie",
        _INPUTS,
        "{id(parameter): FixedParameter(parameter.value) for",
        "{id(parameter): parameter for",
    ),
    Bug(
        "input gradients: source and target swapped",
        "swapped",
        _INPUTS,
        "return values, [parameter.grad for parameter in parameters]",
        "return values, [parameter.grad for parameter in parameters[::-1]]",
    ),
    Bug(
        "input gradients: log-probability without its softmax",
        "dropped branch",
        _INPUTS,
        "log_softmax_backward(dvalues, cache)",
        "dvalues",
    ),
    Bug(
        "input gradients: sign",
        "sign",
        _INPUTS,
        "dvalues[:, output.token] = 1",
        "dvalues[:, output.token] = -1",
    ),
)

SALIENCY = (
    Bug(
        "integrated gradients: weights that sum to 2",
        "missing scale",
        _SALIENCY,
        _WEIGHTS,
        "weights = np.concatenate([[0], length * weights, [0]])",
    ),
    Bug(
        "integrated gradients: length of the piece left out",
        "missing scale",
        _SALIENCY,
        _WEIGHTS,
        "weights = np.concatenate([[0], weights / 2, [0]])",
    ),
    Bug(
        "integrated gradients: mean over the points",
        "missing sum",
        _SALIENCY,
        "_times(weights, each).sum(0, keepdims=True)",
        "_times(weights, each).mean(0, keepdims=True)",
    ),
    Bug(
        "integrated gradients: the first piece only",
        "missing sum",
        _SALIENCY,
        "np.sum(parts, axis=0)",
        "parts[0]",
    ),
    Bug(
        "gradient × input: input left out",
        "missing scale",
        _SALIENCY,
        "(to_numpy(x).astype(np.float64) * to_numpy(dx)).sum(-1)",
        "to_numpy(dx).astype(np.float64).sum(-1)",
    ),
)

LOSS_CHECK = (
    Bug(
        "check_loss: a language model predicts the token that it reads",
        "wrong term",
        _LOSS,
        "(ids[:, :-1], ids[:, 1:])",
        "(ids[:, :-1], ids[:, :-1])",
    ),
    Bug(
        "check_loss: a masked language model predicts every token",
        "wrong mask",
        _LOSS,
        "masked[0, chosen], targets[0, chosen] = tokenizer.mask_id, ids[0, chosen]",
        "masked[0, chosen], targets[...] = tokenizer.mask_id, ids",
    ),
    Bug(
        "check_loss: only the first tensor of a group",
        "missing sum",
        _LOSS,
        "directions = {tensor: signs(rng, draw.target.tensors[tensor].shape) for tensor in tensors}",
        "directions = {tensor: signs(rng, draw.target.tensors[tensor].shape) for tensor in tensors[:1]}",
    ),
)

MAPPED = (
    Bug(
        "map_tensor: the numbers at the beginning of the file",
        "wrong term",
        _MAPPED,
        "access=mmap.ACCESS_COPY, offset=page)",
        "access=mmap.ACCESS_COPY, offset=0)",
    ),
    Bug(
        "map_tensor: a map that cannot be written to",
        "wrong term",
        _MAPPED,
        "access=mmap.ACCESS_COPY",
        "access=mmap.ACCESS_READ",
    ),
    Bug(
        "map_tensor: numbers that are not aligned",
        "dropped branch",
        _MAPPED,
        " or tensor.start % dtype.itemsize:",
        ":",
    ),
    Bug(
        "load_folder: a matrix (out, in) is mapped as it stands",
        "transposed",
        "interop/families/family.py",
        "len(self.theirs) == 1 and not self.transpose",
        "len(self.theirs) == 1",
    ),
    Bug(
        "flatten: values that lie apart are not copied",
        "lost tie",
        "nn/module.py",
        "            part[...] = parameter.value",
        "            pass",
    ),
)

OTHER_MODELS = (*PARTS, *INPUT_GRADIENTS, *SALIENCY, *LOSS_CHECK, *MAPPED)
