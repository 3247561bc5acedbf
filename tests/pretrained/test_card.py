"""The cards of the pretrained translators: their fields, their scores, and the documentation."""

import json
import re

import pytest
from paths import ROOT
from toy_pretrained import FIELDS, SENTENCE, toy_card, toy_checkpoint

from npformer import UserError
from npformer.pretrained import (
    Card,
    MeasuredScore,
    names,
    read_pretrained,
    save_pretrained,
    weights_fingerprint,
)

MEASURED = {
    "source": "test.en",
    "reference": "test.de",
    "setting": "tokenised",
    "bleu": 12.345,
    "signature": "nrefs:1|tok:none",
    "beam": 5,
    "length_penalty": 0.6,
    "sentences": 1000,
    "empty": 0,
    "weights": "",
}


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
    for name in FIELDS.keys() - {"example"}:
        with pytest.raises(UserError, match=f"the model card has no entry '{name}'"):
            Card.from_dict({key: value for key, value in FIELDS.items() if key != name})
    with pytest.raises(UserError, match="the model card is a list and not a JSON object"):
        Card.from_dict([])


def test_the_old_name_of_a_field_is_read():
    """The translator that ships has a card with the field recipe."""
    old = {"recipe" if name == "training" else name: value for name, value in FIELDS.items()}
    assert Card.from_dict(old) == toy_card()


def test_the_section_of_the_readme():
    text = toy_card(scores=(MeasuredScore.from_dict(MEASURED),)).section("en-de")
    assert text.startswith("## The translator that ships: English to German\n")
    assert f'npformer translate --model en-de "{SENTENCE}"\n' in text
    assert "| licence | for tests |\n" in text
    assert "| training | 4 + 4 layers &#124; none of them trained |\n" in text
    assert "| test.de, 1,000 sentences | tokenised | 12.35 | 5 | nrefs:1&#124;tok:none |\n" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:  # the same number of cells in every row
        assert len({line.count("|") for line in table.strip().splitlines()}) == 1


def documentation():
    """The text of the README and of the pages in docs/."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_the_documentation_has_the_measured_scores():
    text = documentation()
    for name in names():
        card = read_pretrained(name).card
        assert f"npformer translate --model {name} " in text
        assert f"`{card.command}`" in text
        for score in card.scores:
            cells = [score.reference, f"{score.bleu:.2f}", score.signature.replace("|", "&#124;")]
            rows = [line for line in text.splitlines() if all(cell in line for cell in cells)]
            assert len(rows) == 1, cells


def test_the_documentation_names_only_existing_translators():
    shown = set(re.findall(r"--model ([a-z]+-[a-z]+) ", documentation()))
    assert shown <= set(names())
