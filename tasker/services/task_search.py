"""Search by a text that may be the id or name of a task, a dead letter, a template, a namespace or a tag."""

from __future__ import annotations

import string
from collections.abc import Collection, Sequence
from typing import Any, Literal
from uuid import UUID

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.services.tasks import names

SHORTEST_PREFIX, DIGITS = 6, 32
MOST_NAMED = 20
Kind = Literal["task", "entry", "correlation", "tasks", "template", "namespace", "tag", "templates", "nothing"]


@dataclass(frozen=True, slots=True)
class SearchMatch:
    """Result of a search.

    `kind` is a `task`, a dead letter's `entry`, the `correlation` of tasks, several `tasks` with that id prefix, a
    `template` or `namespace` of this name, a `tag`, `templates` (namespace and name) whose names contain the text, or
    `nothing`.
    """

    kind: Kind
    identifiers: Sequence[str] = ()
    templates: Sequence[tuple[str, str]] = ()


class TaskSearch:
    """Search for tasks by a text."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def find(self, text: str, *, namespaces: Collection[str] | None = None) -> SearchMatch:
        """Return the match of a text: an id or its beginning (at least six digits), a template, a namespace or a tag.

        `namespaces`: only search these; None searches all.
        """
        text, where = text.strip(), names(namespaces)
        digits = text.replace("-", "").lower()
        if digits and not set(digits) - set(string.hexdigits) and SHORTEST_PREFIX <= len(digits) <= DIGITS:
            found = await (self._of_uuid if len(digits) == DIGITS else self._of_prefix)(digits, where)
            if found.kind != "nothing":
                return found
        return await self._of_word(text, where)

    async def _of_uuid(self, digits: str, namespaces: list[str] | None) -> SearchMatch:
        rows = await self._query("of_uuid", uuid=str(UUID(digits)), namespaces=namespaces)
        return SearchMatch(rows[0][0], [rows[0][1]]) if rows else SearchMatch("nothing")

    async def _of_prefix(self, digits: str, namespaces: list[str] | None) -> SearchMatch:
        bounds = {"lowest": f"{digits:0<32}", "highest": f"{digits:f<32}"}
        params = {**bounds, "limit": MOST_NAMED, "namespaces": namespaces}
        found = [row[0] for row in await self._connection.execute(query("tasks", "starting_with"), params)]
        return SearchMatch("tasks" if len(found) > 1 else "task", found) if found else SearchMatch("nothing")

    async def _of_word(self, text: str, namespaces: list[str] | None) -> SearchMatch:
        rows = await self._query("templates_like", text=text, namespaces=namespaces, limit=MOST_NAMED)
        if exact := [(namespace, name) for namespace, name, same in rows if same]:
            return SearchMatch("template", templates=exact)
        if found := next((namespace for namespace, *_ in rows if namespace.lower() == text.lower()), None):
            return SearchMatch("namespace", [found])
        if await self._query("tagged", tag=text, namespaces=namespaces):
            return SearchMatch("tag", [text])
        templates = [(namespace, name) for namespace, name, _ in rows]
        return SearchMatch("templates" if templates else "nothing", templates=templates)

    async def _query(self, name: str, **params: Any) -> Sequence[tuple[Any, ...]]:
        return await self._connection.execute(query("listing", name), params)
