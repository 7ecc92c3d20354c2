"""Secrets that are searched for in everything that leaves a process."""

from __future__ import annotations

import base64
from collections.abc import Collection
from importlib.util import find_spec
from urllib.parse import quote

import psycopg

CANARIES = {
    "env": "canary-env-4711/ü",
    "file": "canary-file-0815+x",
    "field": 'canary-"field"-2342',
    "sops": "canary-sops-1701&y",
    "vault": "canary-vault-8128=z",
    **({"aws": "canary-aws-6174 w"} if find_spec("botocore") else {}),
}
"""One of each provider; that of AWS only where its client is installed."""


def leaks(text: str, without: Collection[str] = ()) -> list[str]:
    """The lines of a text in which a canary is found, in any form; `without` are canaries that may be there."""
    forms = {name: forms_of(value) for name, value in CANARIES.items() if name not in without}
    return [f"{name}: {line[:300]}" for name, each in forms.items() for line in text.splitlines() if _any(each, line)]


def forms_of(value: str) -> list[str]:
    """A secret as it is, in JSON and HTML, hexadecimal, percent-encoded, in base64 and after `app:` there."""
    raw = value.encode()
    plain = [value, value.replace('"', '\\"'), value.replace('"', "&#34;").replace("&", "&amp;"), quote(value, safe="")]
    encoded = [base64.b64encode(raw).decode(), base64.b64encode(b"app:" + raw).decode(), raw.hex()]
    return [*plain, *encoded, value.encode("unicode_escape").decode()]


def _any(forms: list[str], line: str) -> bool:
    return any(form in line for form in forms)


def rows_of(url: str) -> str:
    """Every row of every table, as text."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select quote_ident(schemaname) || '.' || quote_ident(tablename) from pg_tables"
            " where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        rows = [connection.execute(f"select t::text from {table} t").fetchall() for (table,) in tables]  # type: ignore[call-overload]
    return "\n".join(row for table in rows for (row,) in table)
