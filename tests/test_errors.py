"""UserError's suggestions, and the registry that every lookup by name uses."""

import pytest

from npformer.errors import Registry, UserError, did_you_mean, nearest, quantity, unknown


def test_the_most_similar_name_is_suggested():
    assert did_you_mean("smal", ["tiny", "small", "base"]) == "did you mean small?"
    assert did_you_mean(1, ["tiny", "small"]) == "choose one of tiny, small"
    assert did_you_mean("f14", ["F13", "F14"]) == "did you mean F14?"
    assert did_you_mean("zzz", ["tiny", "small"]) == "choose one of tiny, small"
    assert did_you_mean("zzz", ["the", "cat", "the"]) == "choose one of the, cat"


def test_the_beginning_of_a_long_name_suggests_it():
    assert nearest("beam", ["attention", "beam-search"]) == "beam-search"
    assert nearest("search", ["attention", "beam-search"]) == "beam-search"  # similar enough
    assert nearest("", ["beam-search"]) is None
    assert nearest("x", []) is None


def test_the_error_for_an_unknown_name():
    assert str(unknown("term", "sofmax", ["softmax"], "npformer glossary")) == (
        "unknown term 'sofmax': did you mean softmax?"
    )
    assert str(unknown("term", "x", ["softmax"], "npformer glossary")) == (
        "unknown term 'x': npformer glossary prints all names"
    )


def test_a_registry_finds_registered_names_once_and_suggests_similar_ones():
    presets = Registry[int]("preset")
    assert presets.register("small", 1) == 1
    presets.register("base", 2)
    assert presets.find("base") == 2
    assert (presets.names(), list(presets), len(presets)) == (["small", "base"], [1, 2], 2)
    assert "base" in presets
    with pytest.raises(UserError, match="unknown preset 'bas': did you mean base"):
        presets.find("bas")
    with pytest.raises(UserError, match="unknown preset 'x': choose one of small, base"):
        presets.find("x")
    with pytest.raises(AssertionError, match="the preset 'small' is registered twice"):
        presets.register("small", 2)


def test_a_long_registry_names_the_command_that_lists_it():
    figures = Registry[int]("figure", listing="npformer figures --list")
    figures.register("F01", 1)
    with pytest.raises(UserError, match="unknown figure 'zz': npformer figures --list prints all names"):
        figures.find("zz")


def test_a_number_agrees_with_its_noun():
    assert [quantity(number, "line") for number in (0, 1, 1200)] == ["0 lines", "1 line", "1,200 lines"]
    assert quantity(1, "axis", "axes") == "1 axis"
    assert quantity(2, "axis", "axes") == "2 axes"
