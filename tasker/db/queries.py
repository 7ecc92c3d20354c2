"""Named queries from `sql/queries/*.sql`: `-- name: x` begins a query, and comments after it describe its result."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "sql" / "queries"


@cache
def query(file: str, name: str) -> str:
    """Return the SQL of the query `name` in `FILE.sql`. Raises `KeyError` if it does not exist."""
    return _queries(file)[name]


@cache
def _queries(file: str) -> dict[str, str]:
    text = (FOLDER / f"{file}.sql").read_text(encoding="utf-8")
    parts = text.split("-- name: ")[1:]
    return {name.strip(): _without_comments(body) for name, _, body in (part.partition("\n") for part in parts)}


def _without_comments(body: str) -> str:
    return "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
