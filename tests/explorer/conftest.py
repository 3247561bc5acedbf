"""Fixtures of the explorer's tests: a browser, the page of a small translation, and its readers."""

import dataclasses

import browser
import pytest
from readers import make_reader
from tiny_runs import CHARACTERS, gpt_checkpoint
from word_translator import word_translator

import npformer
from npformer.explorer import explore
from npformer.storage.checkpoint import save_checkpoint

chromium = browser.chromium


@pytest.fixture(scope="session")
def html():
    """Return the page of a small translator with one sentence."""
    return explore(word_translator(), "the dog is tired").html


@pytest.fixture(scope="session")
def loaded_gpt(tmp_path_factory):
    """Return a function that returns a tiny GPT of characters, as npformer.load returns one."""

    def load(codec=CHARACTERS, **changes):
        path = tmp_path_factory.mktemp("run") / "run.safetensors"
        checkpoint = gpt_checkpoint(**{"vocab_size": len(codec.tokens)} | changes)
        save_checkpoint(dataclasses.replace(checkpoint, codecs={"text": codec.to_json()}), path)
        return npformer.load(path)

    return load


@pytest.fixture(scope="session")
def html_of_gpt(loaded_gpt):
    """Return the page of a small GPT with one text."""
    return explore(loaded_gpt(context=60), "the cat\nate").html


@pytest.fixture(params=["keyboard", "finger"])
def reader(request, chromium, html):
    """Yield a reader of the page who uses only the keyboard, and one who uses a finger on a phone."""
    with make_reader(request.param, chromium, html) as made:
        yield made
