"""Every array of a pass through a Transformer or a GPT, forward and backward, from the package's layers.

The package's caches hold the values that backward needs. Their gradients exist only between two layers. Here
each layer is watched: what its forward pass was given and returned, and likewise its backward pass.
"""

import re
from collections import defaultdict
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from npformer.backend import is_array
from npformer.explorer.model_data import explorer_name
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.caches import members
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.functional.softmax import softmax_backward
from npformer.functional.tutorial_masks import fill_scores_backward
from npformer.kernels.choice import plain_pairs
from npformer.kernels.dropout import ACTIVATIONS as FUSED_ACTIVATIONS
from npformer.models.gpt import GPT
from npformer.models.transformer.sequences import Postprocess
from npformer.nn import AddNorm, LayerNorm, Linear, MultiHeadAttention, RMSNorm, TiedProjection
from npformer.nn.context import AttentionMask

# arrays of a cache that are not numbers of the model: ids, masks, distances and angles
NOT_NUMBERS = ("ids", "mask", "query_mask", "distance", "cos", "sin")
NO_TARGET = -1  # the target of the last token of a text


class PassRecord:
    """The values and gradients of a pass, by the names of the explorer, without the batch axis of length 1.

    Args:
        model: A Transformer or a GPT of float64 numbers.
        ids: source, target_in and target_out, a list of ids each. Of a GPT, they are an empty list, the text,
            and the next tokens.
        heads: For an attention, the heads that are switched off.
        masks: For an attention, changed cells: query, key, and whether the query may attend to the key.
        values: For the output `.y` of a linear map or of a layer norm, pairs of an index and a value.
        rng: The generator for dropout; None computes without dropout.
    """

    def __init__(self, model, ids, *, heads=None, masks=None, values=None, rng=None):
        self.heads, self.masks, self.edits = heads or {}, masks or {}, values or {}
        self.values, self.grads = {}, {}
        self._sums = defaultdict(float)  # the gradient of each array, by its id, from all layers that used it
        self._alive = []  # ids are unique as long as the arrays live
        # the gradient of the output of each activation, by the id of the first array of its cache
        self._activated = {}
        self._inputs = {}  # the input of a layer, by the id of its cache
        self.config = model.config
        source, target_in, target_out = (np.array([x]) for x in ids)
        is_gpt = isinstance(model, GPT)
        self._embeddings = ("embedding",) if is_gpt else ("source", "target")
        inputs = (target_in,) if is_gpt else (source, target_in)
        pad_id = NO_TARGET if is_gpt else self.config.pad_id
        model.zero_grad()
        with plain_pairs(), ExitStack() as self._patches:
            self._watch(model)
            self._watch_activations()
            logits, self.cache = model.forward(*inputs, train=rng is not None, rng=rng)
            loss, loss_cache = cross_entropy(
                logits, target_out, smoothing=self.config.label_smoothing, pad_id=pad_id
            )
            dlogits = cross_entropy_backward(1.0, loss_cache)
            model.backward(dlogits, self.cache)
        self.values["loss"] = loss
        self._note("logits", logits, dlogits)
        self.values["loss.log_probs"] = loss_cache.log_probs
        for name, parameter in model.named_parameters():
            self.values[explorer_name(name)], self.grads[explorer_name(name)] = (
                parameter.value,
                parameter.grad,
            )
        self._collect(self.cache, "")

    def _note(self, path, value=None, grad=None):
        if value is not None:
            self.values[path] = value[0]
        if grad is not None:
            self.grads[path] = grad[0]

    def _replace(self, layer, **methods):
        """Give a layer other methods until the record is complete."""
        for name, method in methods.items():
            self._patches.enter_context(patch.object(layer, name, method))

    def _watch(self, model):
        """Replace forward and backward of all layers of the model by methods that record."""
        for side in self._embeddings:
            self._watch_embedding(getattr(model, side), side)
        self._watch_layers(model, "")

    def _watch_layers(self, module, path):
        for name, child in module.children():
            if name in self._embeddings or not hasattr(child, "children"):
                continue
            child_path = explorer_name(f"{path}{name}.weight").removesuffix(".weight")
            if isinstance(child, (Linear, TiedProjection)):
                self._watch_layer(child, child_path)
            elif isinstance(child, (LayerNorm, RMSNorm, AddNorm)):
                self._watch_norm(child, child_path)
            else:
                if isinstance(child, MultiHeadAttention):
                    self._watch_attention(child, child_path)
                if isinstance(child, Postprocess):
                    self._watch_postprocess(child)
                if hasattr(child, "dropout1"):
                    self._watch_pre_norm(child, child_path)
                self._watch_layers(child, f"{path}{name}.")

    def _watch_embedding(self, layer, side):
        backward = layer.backward

        def recorded(dy, cache):
            self._note(f"{side}.y", cache.y, dy)
            return backward(dy, cache)

        self._replace(layer, backward=recorded)

    def _watch_layer(self, layer, path):
        """Record the output and its gradient, and add up the gradients of the input."""
        forward, backward = layer.forward, layer.backward

        def recorded(*inputs):
            y, cache = forward(*inputs)
            y = self._edited(y, f"{path}.y")
            self._note(f"{path}.y", y)
            self._alive += [inputs[0], cache]
            self._inputs[id(cache)] = inputs[0]
            return y, cache

        def recorded_backward(dy, cache):
            self._note(f"{path}.y", grad=dy)
            dy = self._unedited(dy, f"{path}.y")
            dx = backward(dy, cache)
            self._sums[id(self._inputs[id(cache)])] += dx[0] if isinstance(dx, tuple) else dx
            return dx

        self._replace(layer, forward=recorded, backward=recorded_backward)

    def _watch_norm(self, layer, path):
        self._watch_layer(layer, path)
        backward = layer.backward

        def recorded(dy, cache):
            xhat, scale, gain = getattr(cache, "norm", cache)
            dxhat = self._unedited(dy, f"{path}.y") * gain
            unscaled = xhat / scale
            name = "rrms" if isinstance(layer, RMSNorm) else "rstd"
            self._note(f"{path}.xhat", xhat, dxhat)
            self._note(f"{path}.{name}", scale, (dxhat * unscaled).sum(-1, keepdims=True))
            dx = backward(dy, cache)
            if isinstance(layer, AddNorm):  # its input is a sum, whose gradient is that of its first term
                self._note(f"{path.replace('norm', 'add')}.sum", grad=dx[0])
            return dx

        self._replace(layer, backward=recorded)

    def _watch_postprocess(self, layer):
        """Add the gradient that skips the sublayer to the gradients of its input."""
        forward, backward = layer.forward, layer.backward

        def recorded(x, h, context):
            y, cache = forward(x, h, context)
            self._alive += [x, cache]
            self._inputs[id(cache)] = x
            return y, cache

        def recorded_backward(dy, cache):
            dx, dh = backward(dy, cache)
            self._sums[id(self._inputs[id(cache)])] += dx
            return dx, dh

        self._replace(layer, forward=recorded, backward=recorded_backward)

    def _watch_pre_norm(self, layer, path):
        """Record the sums of a layer with the norm before each sublayer, and their gradients."""
        numbers = [number for number in (1, 2, 3) if hasattr(layer, f"dropout{number}")]
        forward = layer.forward

        def recorded(*inputs):
            y, cache = forward(*inputs)
            self._note(f"{path}.add{numbers[-1]}.sum", y)
            return y, cache

        self._replace(layer, forward=recorded)
        for number in numbers:
            self._watch_sum_after(getattr(layer, f"dropout{number}"), f"{path}.add{number}.sum")

    def _watch_sum_after(self, dropout, path):
        """Record the gradient of x + dropout(h): that of the output of the dropout, as a sum copies it."""
        backward = dropout.backward

        def recorded(dy, cache):
            self._note(path, grad=dy)
            return backward(dy, cache)

        self._replace(dropout, backward=recorded)

    def _watch_attention(self, layer, path):
        attend, attend_backward = layer.attend, layer.attend_backward
        off = self.heads.get(path, [])

        def recorded(q, k, v, mask, context):
            allowed = np.broadcast_to(mask.allowed, (1, 1, q.shape[2], k.shape[2])).copy()
            for query, key, is_allowed in self.masks.get(path, []):
                allowed[0, 0, query, key] = is_allowed
            mask = AttentionMask(allowed, mask.queries)
            z, cache = attend(q, k, v, mask, context)
            self._note(f"{path}.attention.z", z)
            self._note(f"{path}.attention.scores", cache.scores)
            z = z.copy()
            z[:, off] = 0
            return z, cache

        def recorded_backward(dz, cache):
            dz = dz.copy()
            dz[:, off] = 0
            at = f"{path}.attention"
            weights = cache.weights
            inner = cache.attend if hasattr(cache, "fill") else cache  # of the masks of tutorials
            inner = getattr(inner, "weights_cache", inner)
            ddropped = dz @ cache.v.swapaxes(-1, -2)
            if getattr(cache, "value_product", None) is not None:
                dshare = dz @ layer.value_positions.value.T  # (1, H, T, R)
                rows = np.arange(dz.shape[2])[:, None]
                ddropped = ddropped + dshare[..., rows, cache.distance]
                self._note(f"{at}.value_product.x", grad=dshare)
            dweights = ddropped if inner.dropout_mask is None else ddropped * inner.dropout_mask
            dscores = softmax_backward(dweights, weights)
            if hasattr(cache, "fill"):
                dscores = fill_scores_backward(dscores, cache.fill)
            dq, dk, dv = attend_backward(dz, cache)
            names = {"z": dz, "weights": dweights, "scores": dscores, "q": dq, "k": dk, "v": dv}
            if getattr(cache, "key_product", None) is not None:
                names["key_product.x"] = dq
            for name, grad in names.items():
                self._note(f"{at}.{name}", grad=grad)
            return dq, dk, dv

        self._replace(layer, attend=recorded, attend_backward=recorded_backward)

    def _watch_activations(self):
        """Record the gradients of the outputs of activations, of projections and of feed-forward networks."""
        for pairs in (ACTIVATIONS, FUSED_ACTIVATIONS):
            watched = {name: (f, self._watched_activation(back)) for name, (f, back) in pairs.items()}
            self._patches.enter_context(patch.dict(pairs, watched))

    def _watched_activation(self, backward):
        """Return the backward function of an activation, which also records the gradient of its output."""

        def recorded(dy, cache):
            key = cache[0] if isinstance(cache, tuple) else cache  # calls of plain pairs copy tuples
            self._alive.append(key)
            self._activated[id(key)] = dy
            return backward(dy, cache)

        return recorded

    def _edited(self, y, path):
        """Return y with the values that the reader set."""
        for index, value in self.edits.get(path, []):
            y = y.copy()
            y.reshape(-1)[index] = value
        return y

    def _unedited(self, dy, path):
        """Return the gradient without that of the values that the reader set."""
        for index, _ in self.edits.get(path, []):
            dy = dy.copy()
            dy.reshape(-1)[index] = 0
        return dy

    def _collect(self, cache, path):
        """Record the arrays of a cache tree, under the names of the explorer."""
        for name, member in members(cache):
            member_path = f"{path}{name}"
            if is_array(member):
                if name not in NOT_NUMBERS:
                    self._collect_array(_explorer_path(member_path), member)
            elif name == "activation" and isinstance(member, tuple):
                self._collect_activation(_explorer_path(member_path), member)
            else:
                self._collect(member, f"{member_path}.")

    def _collect_array(self, path, array):
        is_parameter = path in self.values and self.values[path] is array
        if is_parameter or path.endswith((".weight", ".table", ".gain")):
            self.values[path] = array
            return
        self.values.setdefault(path, array[0])
        if id(array) in self._activated:  # the output of a ReLU, which is its cache
            self.grads[path] = self._activated[id(array)][0]
        if id(array) in self._sums:
            self.grads.setdefault(path, self._sums[id(array)][0])

    def _collect_activation(self, path, cache):
        """Record the input x of an activation y = x g(x) and its inner function g. Tanh has (1 + g) / 2."""
        x, inner = cache
        if id(x) not in self._activated:  # inside of a gated activation
            self._note(f"{path}.0", x)
            self._note(f"{path}.1", inner)
            return
        dy = self._activated[id(x)]
        config = self.config
        name = config.activation if "feed_forward" in path else config.projection_activation
        factor = 0.5 if name == "gelu_tanh" else 1
        self._note(f"{path}.0", x)
        self._note(f"{path}.1", inner, dy * x * factor)


def _explorer_path(path):
    """Return the explorer's name of an array of the cache tree."""
    for old, new in (
        (r"\.layers\.", "."),
        (r"\.(?:norm|postprocess)(\d)\.dropout_mask", r".add\1.dropout_mask"),
        (r"\.norm(\d)\.norm\.", r".norm\1."),
        (r"\.dropout(\d)$", r".add\1.dropout_mask"),  # of a layer with the norm before each sublayer
        (r"\.linear\.", "."),
        (r"\.weights_cache\.", "."),
        (r"\.attention\.attend\.", ".attention."),  # with the masks of tutorials
    ):
        path = re.sub(old, new, path)
    return path


def compare(record, arrays, tolerance=1e-12):
    """Check all values and gradients of a record, and the loss, against those of a page.

    Args:
        record: The record.
        arrays: {path: (values, gradients)} of the page.
        tolerance: The largest difference, relative to the largest entry of an array.
    """
    for kind, recorded in enumerate((record.values, record.grads)):
        assert recorded.keys() <= arrays.keys(), recorded.keys() - arrays.keys()
        for path, expected in recorded.items():
            found = arrays[path][kind]
            assert found.shape == expected.shape, path
            difference = np.abs(found - expected).max()
            assert difference <= tolerance * size(path, expected), (path, ("value", "gradient")[kind])


def size(path, array):
    """Return the largest entry, or 1 for numbers that are 0 in exact arithmetic, and here only rounding.

    Such is the gradient of the biases of keys, since the same number added to all scores changes no weight.
    Adam divides it by its own size, so that it moves these biases by rounding alone.
    """
    largest = np.abs(array).max()
    return 1.0 if largest < 1e-12 or path.endswith("projections.1.bias") else largest
