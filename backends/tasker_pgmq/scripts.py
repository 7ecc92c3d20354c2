"""SQL that the backend needs in the database."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from tasker.errors import BackendUnavailable

_OWN = ("queues", "hints", "messages")
_QUOTE = "$pgmq_install$"
_SCHEMA = "IF to_regnamespace('pgmq') IS NULL THEN CREATE SCHEMA pgmq; END IF;"


def install_scripts() -> list[tuple[str, str]]:
    """Return (name, SQL) in the order of installation; each script may be run again."""
    folder = files("tasker_pgmq") / "sql"
    scripts = [(f"tasker_pgmq/{name}", (folder / f"{name}.sql").read_text("utf-8")) for name in _OWN]
    return [("pgmq", _pgmq_when_missing()), *scripts]


def role_script(roles: Sequence[str]) -> str:
    """Return the SQL of the grants that these roles, quoted for SQL, need to send and take messages."""
    text = (files("tasker_pgmq") / "sql" / "roles.sql").read_text("utf-8")
    return text.replace("{roles}", ", ".join(roles))


def _pgmq_when_missing() -> str:
    """Return SQL that installs PGMQ from its wheel unless the database has it, as an extension or by this script.

    It needs no file on the server and no right to create extensions. Running PGMQ's own script twice would fail.
    """
    return (
        f"do $do$ begin\n  if to_regclass('pgmq.meta') is null then\n    execute {_QUOTE}\n{_pgmq_text()}\n"
        f"{_QUOTE};\n  end if;\nend $do$"
    )


def _pgmq_text() -> str:
    # Located without an import, because the package imports a database driver.
    spec = find_spec("pgmq")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        script = Path(folder) / "sql" / "pgmq.sql"
        if script.is_file():
            text = script.read_text("utf-8")
            # The original needs the right to create schemas even where the schema exists.
            return text.replace("CREATE SCHEMA IF NOT EXISTS pgmq;", _SCHEMA)
    raise BackendUnavailable("the SQL of PGMQ was not found", hint="install it: pip install 'pgmq>=1.1.4'")
