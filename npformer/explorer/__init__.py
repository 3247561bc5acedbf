"""The explorer: one HTML file in which a reader follows every number of a model, forward and backward.

    >>> page = npformer.load("runs/en-fr").explore("the dog is tired")
    >>> page.save("explorer.html")

A page needs no network and no server. In a notebook, a page that is the value of a cell is shown in a frame.
A live page carries the parameters of a small model and computes everything itself. A recorded page carries
the arrays of one forward and backward pass, for any other model.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from npformer.backend import Array
from npformer.errors import UserError
from npformer.explorer.layer_data import data_of_layer
from npformer.explorer.model_data import PageData, live_data, live_text_data, why_not_live
from npformer.explorer.page import Page, make_page
from npformer.explorer.recorded import recorded_data, with_saved
from npformer.pretrained import Translator, load
from npformer.pretrained.loaded import Loaded, TextGenerator
from npformer.pretrained.text_model import as_text, as_texts

__all__ = ["Page", "explore", "explore_layer"]


def explore(
    model: Loaded | str | os.PathLike[str],
    source: str | Sequence[str],
    target: str | None = None,
    *,
    site: Mapping[str, Any] | None = None,
) -> Page:
    """Return the page of the explorer for a model and a sentence, or several.

    The page is live if the model has at most `model_data.LARGEST_LIVE` parameters, and is a Transformer that
    reads and writes whole words or a GPT of characters. Otherwise, it is a recorded one.

    Args:
        model: A trained model, or its name, folder or file, as for `npformer.load`.
        source: The sentence or the text that the model reads, or several of them. The page begins with the
            first one, and offers the others.
        target: The translation, or for a masked language model the text with its gaps filled. By default,
            what the model predicts. It belongs to a single sentence.
        site: The addresses of a site that contains the page: "home", the page to which its name leads, and
            "lessons", the pages of lessons by the names of their files. By default, there are no links.

    Raises:
        UserError: If there is no such model, if a text is empty or too long for a page, if the model does
            not know a word, or if there are several sentences and a target.
    """
    texts = list(dict.fromkeys(as_texts(source)))
    if not texts:
        raise UserError("there is no sentence to explore: give at least one")
    if target is not None and len(texts) > 1:
        raise UserError("a translation belongs to one sentence: leave it out, or give a single sentence")
    loaded = load(model) if isinstance(model, (str, os.PathLike)) else model
    if target is not None and isinstance(loaded, TextGenerator):
        raise UserError("a language model reads one text and predicts its tokens: leave out the target")
    head, arrays = _data_of(loaded, texts, None if target is None else as_text(target))
    return make_page(head if site is None else head | {"site": dict(site)}, arrays)


def _data_of(loaded: Loaded, texts: list[str], target: str | None) -> PageData:
    """Return the data of a live page if the model allows it, and otherwise those of a recorded page."""
    is_live = why_not_live(loaded) is None
    if is_live and isinstance(loaded, Translator):
        pages = [live_data(loaded, text, target) for text in texts]
    elif is_live and isinstance(loaded, TextGenerator):
        pages = [live_text_data(loaded, text) for text in texts]
    else:
        pages = [with_saved([recorded_data(loaded, text, target) for text in texts])]
    head, arrays = pages[0]  # a live page computes the other texts itself
    return PageData(head | {"sentences": texts}, arrays)


def explore_layer(layer: Any, *inputs: Array, dy: Array | None = None) -> Page:
    """Return the page of a layer: its cache, its parameters, and all gradients that its backward computes.

    Args:
        layer: A layer, your own or one of npformer, with forward(x, ...) -> (y, cache) and
            backward(dy, cache) -> dx. The gradients of its parameters stay as they are.
        inputs: The arguments of forward.
        dy: The gradient of the output. By default, it is drawn at random.

    Raises:
        UserError: If the layer does not keep to this form.
    """
    return make_page(*data_of_layer(layer, inputs, dy))
