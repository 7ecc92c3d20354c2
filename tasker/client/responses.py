"""Health as clients return it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

from tasker.dataclasses import dataclass


@dataclass(frozen=True)
class HealthResponse:
    """Health of database and messaging."""

    healthy: bool = False
    status: str = ""
    timestamp: str = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the object from plain data; a missing `healthy` is derived from `status`."""
        known = {item.name for item in fields(cls)}
        given = {"healthy": data.get("status") == "healthy", **data}
        return cls(**{name: value for name, value in given.items() if name in known and value is not None})
