"""The names of the classes of a classifier in a config.json."""

from __future__ import annotations

from typing import Any

from npformer.errors import UserError
from npformer.interop.settings_file import REMEDY, Settings


def labels_of(settings: Settings) -> list[str]:
    """Return the names of the classes of a classifier.

    Args:
        settings: The settings of a config.json.

    Raises:
        UserError: If they are not texts with the numbers from 0, or if more than one of them, or a number, is
            predicted: only classes of which one is right have probabilities that sum to 1.
    """
    one_class = "single_label_classification"
    settings.require("problem_type", one_class, default=one_class)
    labels = settings.part("id2label").values
    if not labels:  # transformers writes no names that are the usual ones
        return [f"LABEL_{index}" for index in range(settings.count("num_labels", 2))]
    ordered = [labels.get(str(index)) for index in range(len(labels))]
    if not all(isinstance(label, str) for label in ordered):
        raise UserError(
            f"id2label in {settings.place} does not name the classes 0 .. {len(labels) - 1}: {REMEDY}"
        )
    return [str(label) for label in ordered]


def labels_settings(n_classes: int) -> dict[str, Any]:
    """Return the settings that name the classes of a classifier, the way back from labels_of.

    Args:
        n_classes: The number of classes; 0 for a model that is not a classifier.
    """
    if not n_classes:
        return {}
    labels = {f"LABEL_{number}": number for number in range(n_classes)}
    return {"label2id": labels, "id2label": {str(number): label for label, number in labels.items()}}
