"""ModelSettings: what the configurations of all models share."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from npformer.validation import require_known


class ModelSettings:
    """The base class of the configurations of models, which are frozen dataclasses.

    Attributes:
        reads: The noun for what a model trains on: "sentence pairs", "text" or "sentences".
        later: The settings that older files lack, each with the value that says what these models compute.
    """

    reads: ClassVar[str] = "sentence pairs"
    later: ClassVar[Mapping[str, Any]] = {}

    def replace(self, **changes: Any) -> Self:
        """Return the configuration with some settings changed. Unknown names raise a UserError."""
        require_known(self, changes)
        settings: Any = self
        changed: Self = dataclasses.replace(settings, **changes)
        return changed

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict of JSON values."""
        settings: Any = self
        return dataclasses.asdict(settings)
