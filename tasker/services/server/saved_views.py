"""Saved views: lists of tasks stored under a name, for every user who may list tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import UsageError
from tasker.services.by_hand import audited

MOST_VIEWS, LONGEST_NAME, LONGEST_ADDRESS = 50, 60, 2000


@dataclass(frozen=True, slots=True)
class SavedView:
    """Saved view: `address` has the filters as the query string of a URL."""

    name: str
    address: str
    saved_by: str
    saved_at: datetime


class SavedViews:
    """Saved views in `tasker.saved_views`. Methods raise `DatabaseError`."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def list(self) -> Sequence[SavedView]:
        """Return all views, by name."""
        return [SavedView(*row) for row in await self._connection.execute(query("operators", "views"))]

    @audited("App.saved_views.save", "_connection")
    async def save(self, name: str, address: str, *, by: str) -> None:
        """Save these filters under a name, replacing an existing view. Raises `UsageError`."""
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            raise UsageError(f"{name!r:.80} is not a valid view name", hint=f"1 to {LONGEST_NAME} printable characters")
        if len(address) > LONGEST_ADDRESS:
            raise UsageError("these filters are too long to save", hint="choose fewer")
        params = {"name": name, "address": address, "by": by, "most": MOST_VIEWS}
        if not await self._connection.execute(query("operators", "save_view"), params):
            raise UsageError(f"there are {MOST_VIEWS} views already", hint="remove one that is no longer needed")

    @audited("App.saved_views.remove", "_connection")
    async def remove(self, name: str) -> bool:
        """Remove a view; return False if there is none of this name."""
        return bool(await self._connection.execute(query("operators", "remove_view"), {"name": name}))
