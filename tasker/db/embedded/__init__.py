"""The PostgreSQL that Tasker brings along: a real server of one folder, shared by all who use it."""

from __future__ import annotations

from tasker.db.embedded.server import DEFAULT_DATA_DIR, EmbeddedServer

__all__ = ["DEFAULT_DATA_DIR", "EmbeddedServer"]
