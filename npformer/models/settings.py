"""ModelSettings: what the configurations of all models share."""

import dataclasses
from typing import Any, Self

from npformer.storage.validation import require_known


class ModelSettings:
    """The base class of the configurations of models, which are frozen dataclasses."""

    def replace(self, **changes: Any) -> Self:
        """Return the configuration with some settings changed. Unknown names raise a UserError."""
        require_known(self, changes)
        settings: Any = self
        changed: Self = dataclasses.replace(settings, **changes)
        return changed

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a dict of plain values, such as for a JSON file."""
        settings: Any = self
        return dataclasses.asdict(settings)
