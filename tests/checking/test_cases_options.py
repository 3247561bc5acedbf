"""The cases of gradcheck cover every option of the public constructors that changes a formula."""

import inspect
import sys

import numpy as np
import pytest

from npformer import nn
from npformer.checking.cases import component_cases
from npformer.models.bert import BertConfig
from npformer.models.gpt import GPTConfig
from npformer.models.recurrent import RecurrentConfig
from npformer.models.transformer import TransformerConfig
from npformer.models.universal import UniversalConfig
from npformer.nn import attention

# how the parameters begin; sizes, which every case has; and what belongs to decoding and to texts
NO_FORMULA = {"rng", "dtype", "std", "max_length", "context", "start_id", "end_id", "mask_id", "pad_id"}
NO_FORMULA |= {"vocab_size", "source_vocab", "target_vocab"}
LAYERS = [
    thing
    for module in (nn, attention)
    for name, thing in vars(module).items()
    if isinstance(thing, type) and issubclass(thing, nn.Module) and inspect.isfunction(thing.__init__)
]
CONFIGS = [TransformerConfig, GPTConfig, BertConfig, RecurrentConfig, UniversalConfig]


def options_of(thing):
    """Return the options of a constructor with their defaults, by name, if another value adds a formula.

    A number that is not 0, such as eps, is in the formula with its default already.
    """
    parameters = inspect.signature(thing).parameters.values()
    inherited = inspect.signature(TransformerConfig).parameters if thing is UniversalConfig else {}
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty and p.name not in inherited}
    numbers = {name for name, value in defaults.items() if value and type(value) in (int, float)}
    return {name: value for name, value in defaults.items() if name not in NO_FORMULA | numbers}


@pytest.fixture(scope="module")
def tried():
    """Return, for each constructor, the names of the options that some case sets to another value."""
    options = {thing: options_of(thing) for thing in (*LAYERS, *CONFIGS)}
    found = {thing: set() for thing in options}

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "__init__":
            thing = type(frame.f_locals["self"])
            if thing in options and thing.__init__.__code__ is frame.f_code:
                values = frame.f_locals
                found[thing] |= {n for n, default in options[thing].items() if differs(values[n], default)}

    sys.setprofile(watch)
    try:
        for case in component_cases():
            case.build(np.random.default_rng(1))
    finally:
        sys.setprofile(None)
    return found


def differs(value, default):
    return type(value) is not type(default) or value != default


@pytest.mark.parametrize("thing", [*LAYERS, *CONFIGS], ids=lambda thing: thing.__name__)
def test_some_case_sets_every_option(thing, tried):
    assert sorted(set(options_of(thing)) - tried[thing]) == []
