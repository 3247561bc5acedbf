"""ImageModel: a vision Transformer from a Hugging Face folder, as npformer.load returns it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npformer.backend import Array, to_numpy
from npformer.errors import UserError
from npformer.escaping import printable
from npformer.interop.settings_file import Settings, read_settings
from npformer.lenses.logit_lens import layer_outputs
from npformer.models.registry import attention_arrays
from npformer.models.vit import ViT
from npformer.pretrained.encoders import ClassProbability, class_probabilities
from npformer.pretrained.text_model import Kind
from npformer.validation import has_type, require_index, short

if TYPE_CHECKING:
    from npformer.plots import Figure

PROCESSOR = "preprocessor_config.json"
# what other models have, and an ImageModel has not
OF_TEXTS = {"saliency", "lens", "attribution", "patch", "explore", "generate", "fill", "translate", "embed"}


@dataclass(frozen=True)
class ImageAttention:
    """The attention weights of a vision Transformer for one image.

    Attributes:
        image: The image, of shape (Y, X, C).
        weights: The weights, of shape (L, H, N + 1, N + 1). The first of the N + 1 is the class vector.
        grid: The number of patches in a column and in a row.
    """

    image: Array
    weights: Array
    grid: tuple[int, int]

    def plot(
        self, layer: int | None = None, head: int | None = None, query: tuple[int, int] | None = None
    ) -> "Figure":
        """Draw over the image which patches a query looks at, for each head of a layer.

        Args:
            layer: The layer, from 0. The default is the last one.
            head: Draw this head only.
            query: The row and the column of a patch. The default is the class vector.

        Raises:
            UserError: If there is no such layer, head or patch.
        """
        from npformer.plots.images import image_attention

        layer = len(self.weights) - 1 if layer is None else layer
        counts = dict(zip(("layer", "head"), self.weights.shape[:2], strict=True))
        for name, value in (("layer", layer), ("head", head or 0)):
            require_index(name, value, counts[name])
        place = 0
        if query is not None:
            if np.shape(query) != (2,):
                raise UserError(f"query is {short(query)}: give the row and the column of a patch")
            row, column = map(require_index, ("row", "column"), query, self.grid)
            place = 1 + row * self.grid[1] + column
        maps = self.weights[layer, :, place, 1:].reshape(-1, *self.grid)  # (H, P, Q)
        maps = maps if head is None else maps[head : head + 1]
        title = f"layer {layer}" + ("" if head is None else f", head {head}")
        return image_attention(self.image, maps, query=query, title=title)


class ImageModel:
    """A trained vision Transformer: a classifier of images, or an encoder without a head.

    Attributes:
        name: The folder that it was loaded from.
        model: The model.
        labels: The names of the classes, none without a head.

    Args:
        name, model, labels: As above.
        folder: The folder, whose preprocessor_config.json says how images become numbers.
    """

    kind = Kind("vision model", "read text", "npformer.load in Python", "transformers")

    def __init__(self, name: str, model: ViT, labels: Sequence[str], folder: Path) -> None:
        self.name, self.model, self.labels, self._folder = name, model, list(labels), folder

    def logits(self, images: Any) -> Array:
        """Return the logits of the classes, (B, K), or without a head the output of the last norm.

        Args:
            images: Images as `prepare` returns them, of shape (B, C, Y, X).
        """
        return to_numpy(self.model(images))

    def prepare(self, image: Any) -> Array:
        """Return the numbers that the model reads, of shape (1, C, Y, X), as the folder's processor says.

        Args:
            image: The image, of shape (Y, X, C), with bytes from 0 to 255, and of the size of the model: it
                is not resized.

        Raises:
            UserError: If the image has another size or holds no numbers, or if the folder's file is damaged.
        """
        if isinstance(image, str):
            raise UserError(f"{self.name} reads images, not texts: give the array of an image, (Y, X, C)")
        config, image = self.model.config, _numbers(image)
        if image.shape != (*config.image_size, config.n_colours):
            raise UserError(
                f"the image has the shape {image.shape}, and the model reads {config.image_size} pixels of "
                f"{config.n_colours} colours: resize it, for example with PIL"
            )
        settings = Settings({})
        if (self._folder / PROCESSOR).exists():
            settings = read_settings(self._folder, PROCESSOR)
        x = image.astype(np.float64)
        if settings.flag("do_rescale", True):
            x = x * settings.number("rescale_factor", 1 / 255)
        if settings.flag("do_normalize", True):
            x = (x - _of_colours(settings, "image_mean", config.n_colours)) / _of_colours(
                settings, "image_std", config.n_colours
            )
        return x.transpose(2, 0, 1)[None].astype(self.model.values.dtype)  # (1, C, Y, X)

    def classify(self, image: Any) -> list[ClassProbability]:
        """Return the classes of an image with their probabilities, the most probable one first.

        Args:
            image: As for `prepare`.

        Raises:
            UserError: As for `prepare`, or if the model has no head or a single class.
        """
        if not self.labels:
            raise UserError(
                f"{self.name} has no head, and cannot name a class: use its attention and hidden states"
            )
        return class_probabilities(self.logits(self.prepare(image))[0], self.labels)

    def attention(self, image: Any) -> ImageAttention:
        """Return the attention weights of every layer and head for an image. `.plot()` draws them over it.

        Args:
            image: As for `prepare`.
        """
        _, cache = self.model.forward(self.prepare(image))
        weights = attention_arrays(cache)["self"][:, 0]  # (L, H, N + 1, N + 1)
        return ImageAttention(np.asarray(image), weights, self.model.config.grid)

    def hidden_states(self, image: Any) -> Array:
        """Return the input of the layers and the output of each, (L + 1, N + 1, D), the last one normalized.

        Args:
            image: As for `prepare`.
        """
        return np.concatenate([to_numpy(x) for x in layer_outputs(self.model, [self.prepare(image)])])

    def __getattr__(self, name: str) -> Any:
        """Refuse what other models have, with one sentence."""
        if name in OF_TEXTS:
            raise _RefusedError(
                f"{self.name} reads images, and {name} is for models of texts: use logits, classify, "
                "attention and hidden_states, or model.backward, which returns the gradient of the image"
            )
        raise AttributeError(f"an ImageModel has no {name}")

    def __repr__(self) -> str:
        count = self.model.count_parameters()
        return f"<vision model {printable(self.name)}: ViT with {count:,} parameters>"


class _RefusedError(UserError, AttributeError):
    """The error for an attribute that an ImageModel lacks, so that `hasattr` says False."""


def _numbers(image: Any) -> Array:
    """Return an image as an array, or raise UserError if it holds anything but finite numbers."""
    try:
        x = np.asarray(image)
    except ValueError:
        raise UserError("the image has rows of different lengths: give an array, (Y, X, C)") from None
    if x.dtype.kind not in "uif" or not np.isfinite(x).all():
        raise UserError("the image holds something else than finite numbers: give bytes from 0 to 255")
    return x


def _of_colours(settings: Settings, name: str, n_colours: int) -> Array:
    """Return a number for each colour, by default 0.5."""
    value = settings.values.get(name)
    value = [0.5] * n_colours if value is None else value
    if not has_type(value, list[float]) or len(value) != n_colours:
        raise UserError(f"{name} is {short(value)} in {settings.place}: it must be {n_colours} numbers")
    return np.array(value, np.float64)
