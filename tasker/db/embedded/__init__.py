"""PostgreSQL server bundled with Tasker: a real server for one folder, shared by all processes that use it."""

from __future__ import annotations

from tasker.db.embedded.server import DEFAULT_DATA_DIR, EmbeddedServer

__all__ = ["DEFAULT_DATA_DIR", "EmbeddedServer"]
