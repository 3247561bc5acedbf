"""Bugs in what serves other people's models: their parts, saliency, and the check of their gradients."""

BUGS = {
    "functional/patches.py": {
        "cut.transpose(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * q)": {
            "patches: the colours behind the pixels": "(0, 2, 4, 1, 3, 5) → (0, 2, 4, 3, 5, 1)"
        },
        "images: Array = cut.transpose(0, 3, 1, 4, 2, 5)": {
            "patches: joined in another order": "(0, 3, 1, 4, 2, 5) → (0, 3, 4, 1, 2, 5)"
        },
        "return dimages, dkernel.T.reshape(cache.kernel), dbias": {
            "patches: dweight not transposed": "dkernel.T.reshape → dkernel.reshape"
        },
    },
    "models/vit.py": {
        "self.class_vector.accumulate(total[:, :1])": {
            "ViT: gradient of the class vector from the first patch": "total[:, :1] → total[:, 1:2]"
        },
        "total = dx.sum(0, keepdims=True)": {"ViT: positions of the first image only": "total = dx[:1]"},
        "self.patches.backward(dx[:, 1:], cache.patches)": {
            "ViT: patches get the gradients of their left neighbours": "dx[:, 1:] → dx[:, :-1]"
        },
    },
    "nn/patches.py": {"self.bias.accumulate(dbias)": {"PatchEmbedding: bias without a gradient": "pass"}},
    "models/transformer/model.py": {
        "marked[:, 0] = self.config.end_id": {
            "Transformer: a start symbol with the id of padding is masked": "end_id → pad_id",
            "Transformer: no padding is masked where the start symbol has its id": ":, 0 → :",
        }
    },
    "models/bert.py": {"x = x + s\n": {"BertEmbedding: vectors of segments not added": "x = x + 0 * s\n"}},
    "models/transformer/stacks.py": {
        "return self.encoder.backward(dmemory, cache.encoder), dtarget": {
            "EncoderDecoder: gradients of source and target swapped": (
                "return dtarget, self.encoder.backward(dmemory, cache.encoder)"
            )
        }
    },
    "functional/rotary.py": {
        "(share + (1 - share) / self.factor)": {
            "Llama3Scaling: angles multiplied by the factor": "/ self → * self"
        },
        "turns = self.original_context * speeds / (2 * math.pi)": {
            "Llama3Scaling: radians taken for turns": "speeds / (2 * math.pi) → speeds"
        },
        "share = np.clip((turns - self.low) / (self.high - self.low), 0, 1)": {
            "Llama3Scaling: shares below 0 and above 1": "share = (turns - self.low) / (self.high - self.low)"
        },
    },
    "nn/positions.py": {
        "rotary_table(np.arange(max_length), rotated, base, scaling)": {
            "RotaryPositions: angles not scaled": "base, scaling → base"
        }
    },
    "nn/fixed.py": {
        "{id(p): FixedParameter(p.value) for": {
            "input gradients: those of the weights added to the model": "{id(p): p for"
        },
    },
    "lenses/taps.py": {
        "gradient[:, output.position, token] += sign": {
            "score gradient: sign of the other token": "+= sign → += abs(sign)"
        },
        "x if norm is None else norm(x)": {"logit lens: without the last norm": "x"},
    },
    "lenses/attribution.py": {
        "return 0.0 if bias is None else float((bias.value * dy).sum())": {
            "attribution: biases left out": "return 0.0"
        },
        "dx = dx - dx.mean(-1, keepdims=True)": {"attribution: the mean counts as constant, too": "dx = dx"},
        "dx = dy * self.part.gain.value * cache": {"attribution: without the gain": "dx = dy * cache"},
        "return cache[0] if len(cache) == 1": {
            "attribution: sublayers pass a gradient on": "return dy if len(cache) == 1"
        },
    },
    "lenses/patching.py": {
        "(other - site.tap.y) * site.tap.dy": {
            "attribution patching: sign": "(site.tap.y - other) * site.tap.dy",
            "attribution patching: the whole activation": "other * site.tap.dy",
        },
        "_by_place(other, site)[0, places]": {
            "patching: all runs get the first place": "[0, places] → [0, places * 0]"
        },
        "return heads.swapaxes(1, 2)": {"patching: heads taken for tokens": "return heads"},
    },
    "pretrained/input_gradients.py": {
        "self.vectors.accumulate(dy)": {
            "GivenVectors: sign": "self.vectors.accumulate(-dy)",
            "GivenVectors: mean over the variants": "dy → dy / len(dy)",
        },
        "drows[:, output.position] = drow": {
            "input gradients: the position before": "drows[:, output.position - 1] = drow"
        },
        "return values, [parameter.grad for parameter in parameters]": {
            "input gradients: source and target swapped": "parameters → parameters[::-1]"
        },
        "log_softmax_backward(dvalues, cache)": {
            "input gradients: log-probability without its softmax": "dvalues"
        },
        "dvalues[:, output.token] = 1": {"input gradients: sign": "dvalues[:, output.token] = -1"},
    },
    "pretrained/similarity.py": {
        "dx[:, 0] = dy": {"pool: the last token has the gradient": "dx[:, -1] = dy"},
        "dy, _ = cosine_similarity_backward(ds[:, 0], cache.cosine)": {
            "SimilarityTo: the gradient of the other text": "dy, _ → _, dy"
        },
    },
    "pretrained/saliency.py": {
        "weights = np.concatenate([[0], length * weights / 2, [0]])": {
            "integrated gradients: weights that sum to 2": "weights / 2 → weights",
            "integrated gradients: length of the piece left out": "length * weights → weights",
        },
        "_times(weights, each).sum(0, keepdims=True)": {
            "integrated gradients: mean over the points": "each).sum(0 → each).mean(0"
        },
        "np.sum(parts, axis=0)": {"integrated gradients: the first piece only": "parts[0]"},
        "(to_numpy(x).astype(np.float64) * to_numpy(dx)).sum(-1)": {
            "gradient × input: input left out": "to_numpy(dx).astype(np.float64).sum(-1)"
        },
    },
    "pretrained/loss_check.py": {
        "(ids[:, :-1], ids[:, 1:])": {
            "check_loss: a language model predicts the token that it reads": ":, 1: → :, :-1"
        },
        "masked[0, chosen], targets[0, chosen] = tokenizer.mask_id, ids[0, chosen]": {
            "check_loss: a masked language model predicts every token": (
                "masked[0, chosen], targets[...] = tokenizer.mask_id, ids"
            )
        },
        "directions = {tensor: signs(rng, draw.target.tensors[tensor].shape) for tensor in tensors}": {
            "check_loss: only the first tensor of a group": "in tensors → in tensors[:1]"
        },
    },
    "interop/mapped_tensors.py": {
        "access=mmap.ACCESS_COPY, offset=page)": {
            "map_tensor: the numbers at the beginning of the file": "offset=page → offset=0"
        },
        "access=mmap.ACCESS_COPY": {"map_tensor: a map that cannot be written to": "access=mmap.ACCESS_READ"},
        " or tensor.start % dtype.itemsize:": {"map_tensor: numbers that are not aligned": ":"},
    },
    "interop/families/family.py": {
        "is_whole and not self.transpose": {
            "load_folder: a matrix (out, in) is mapped as it stands": "is_whole"
        },
        "[first : first + len(view)] = theirs": {
            "export_folder: a part is written at the beginning of its tensor": "first : first + → : "
        },
    },
}
