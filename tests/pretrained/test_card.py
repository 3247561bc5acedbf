"""The cards of the pretrained translators: their fields, their scores, and the documentation."""

import json
import re

import pytest
from paths import ROOT
from toy_pretrained import FIELDS, MEASURED, toy_card, toy_checkpoint

from npformer import UserError
from npformer.pretrained import (
    Card,
    MeasuredScore,
    load,
    names,
    read_pretrained,
    save_pretrained,
    weights_fingerprint,
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "en-de.safetensors"
    save_pretrained(toy_checkpoint(), path, toy_card())
    return path


def test_only_scores_of_these_weights_are_accepted(path):
    fingerprint = weights_fingerprint(read_pretrained(str(path)).model.state_dict())
    right = MeasuredScore.from_dict(MEASURED | {"weights": fingerprint, "seconds": 3.0})
    save_pretrained(toy_checkpoint(), path, toy_card(scores=(right,)))
    assert read_pretrained(str(path)).card.scores == (right,)
    # the scores of the run itself were measured before the weights were rounded
    for state in (toy_checkpoint().parameters, toy_checkpoint(seed=1).parameters):
        wrong = MeasuredScore.from_dict(MEASURED | {"weights": weights_fingerprint(state)})
        with pytest.raises(UserError, match="measured with other weights"):
            save_pretrained(toy_checkpoint(), path, toy_card(scores=(wrong,)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": " "}, "the card's title is ' '"),
        ({"data": 3}, "the entry 'data' of the model card is 3, not a text"),
        ({"hours": 0}, "the card's hours are 0"),
        ({"hours": "two"}, "the entry 'hours' of the model card is 'two', not a number"),
        ({"date": "31.1.2026"}, "write it as 2026-01-31"),
        ({"beam": 0}, "the card's beam is 0"),
        ({"length_penalty": -1}, "the card's length_penalty is -1"),
        ({"length_penalty": 51}, "the card's length_penalty is 51: it must be 0 or more, at most 50"),
        ({"score": 41}, r"has an unknown entry 'score' \(did you mean scores\?\)"),
        ({"colour": 1}, r"has an unknown entry 'colour' \(perhaps a newer npformer wrote it\)"),
        ({"format": 2}, "the model card has format 2, and this npformer reads up to 1"),
        ({"beam": 10**6}, "the card's beam is 1,000,000: it must be at most 1,000"),
        ({"hours": float("inf")}, "the card's hours are inf"),
        ({"scores": [{"bleu": 41}]}, "the score has no entry 'source': give the JSON that"),
        ({"scores": [41]}, "the score is a whole number and not a JSON object"),
    ],
)
def test_incomplete_cards_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        Card.from_dict(FIELDS | changes)


def test_a_card_has_all_its_fields():
    assert Card.from_dict(json.loads(json.dumps(toy_card().to_dict()))) == toy_card()
    for name in FIELDS.keys() - {"example", "comparison"}:
        with pytest.raises(UserError, match=f"the model card has no entry '{name}'"):
            Card.from_dict({key: value for key, value in FIELDS.items() if key != name})
    with pytest.raises(UserError, match="the model card is a list and not a JSON object"):
        Card.from_dict([])


def documentation():
    """The text of the README and of the pages in docs/."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_the_documentation_has_the_whole_card():
    """docs/model-card.md has every block of the card of en-de, and nothing else has a score of it."""
    page = (ROOT / "docs/model-card.md").read_text(encoding="utf-8").split("\n\n")
    card = read_pretrained("en-de").card
    _, *blocks = card.section("en-de").strip("\n").split("\n\n")
    assert [block for block in page if block in blocks] == blocks  # in this order
    assert f"`{card.command}`" in documentation()
    assert set(re.findall(r"--model ([a-z]+-[a-z]+) ", documentation())) <= set(names())
    for score in card.scores:
        cells = [score.reference, score.score, score.signature.replace("|", "&#124;")]
        rows = [line for line in documentation().splitlines() if all(cell in line for cell in cells)]
        assert len(rows) == 1, cells


def scores_of(card, search, setting="tokenised"):
    """Return the scores of the three test sets."""
    found = [each for each in card.scores if (each.search, each.setting) == (search, setting)]
    sets = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
    assert [each.reference.split(".")[0] for each in found] == sets
    return found


def test_the_sentences_about_the_scores_are_true():
    page = " ".join((ROOT / "docs/model-card.md").read_text(encoding="utf-8").split())
    card = read_pretrained("en-de").card
    beam, greedy, _ = scores_of(card, "beam 5"), scores_of(card, "greedy"), scores_of(card, "beam 5", "raw")
    published = map(float, re.findall(r"\d\d\.\d\d", card.comparison))
    assert all(abs(each.bleu - other) < each.half_width for each, other in zip(beam, published, strict=True))
    gains = [each.bleu - other.bleu for each, other in zip(beam, greedy, strict=True)]
    assert f"A beam of 5 gains {min(gains):.1f} to {max(gains):.1f} BLEU" in page
    assert all(each.invented < other.invented for each, other in zip(beam, greedy, strict=True))
    assert f"Of the {beam[0].invented} invented words" in page
    assert f"with beam 5, the references have {beam[0].invented_in_reference}." in page


def test_the_translations_of_the_limits_are_those_of_the_translator():
    loaded = load("en-de")
    limits = loaded.card.limits
    assert len(limits) >= 10
    assert loaded.translate([each.source for each in limits]) == [each.translation for each in limits]
