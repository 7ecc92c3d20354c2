"""The SQL that the backend needs in the database."""

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
    """(name, SQL) in the order of installation; each script may be run again."""
    folder = files("tasker_pgmq") / "sql"
    own = [(f"tasker_pgmq/{name}", (folder / f"{name}.sql").read_text("utf-8")) for name in _OWN]
    return [("pgmq", _pgmq_when_missing()), *own]


def role_script(roles: Sequence[str]) -> str:
    """What these roles, as SQL names them, must be allowed in order to send and take messages."""
    text = (files("tasker_pgmq") / "sql" / "roles.sql").read_text("utf-8")
    return text.replace("{roles}", ", ".join(roles))


def _pgmq_when_missing() -> str:
    """PGMQ from the text that its wheel carries, unless the database has it, as an extension or by this script.

    No file of the server and no right to make extensions is needed. A second run of the text itself would fail.
    """
    return (
        f"do $do$ begin\n  if to_regclass('pgmq.meta') is null then\n    execute {_QUOTE}\n{_pgmq_text()}\n"
        f"{_QUOTE};\n  end if;\nend $do$"
    )


def _pgmq_text() -> str:
    # found without being imported: the package pulls in a database driver
    spec = find_spec("pgmq")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        script = Path(folder) / "sql" / "pgmq.sql"
        if script.is_file():
            text = script.read_text("utf-8")
            # needs the right to create schemas also where the schema is there
            return text.replace("CREATE SCHEMA IF NOT EXISTS pgmq;", _SCHEMA)
    raise BackendUnavailable("the SQL of PGMQ was not found", hint="install it: pip install 'pgmq>=1.1.4'")
