"""Access to a PostgreSQL database: URLs, network and session settings, and creation of a missing database."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tasker.db.limits import ENCODING, FIXED, NETWORK, SESSION
from tasker.errors import DatabaseUnavailable, SessionRefused, TooManyConnections, UsageError
from tasker.redaction import ENCODE, is_clear, without_password

if TYPE_CHECKING:
    import psycopg

_log = logging.getLogger("tasker.database")

MAINTENANCE_DATABASE = "postgres"

LOGIN_HINTS: Mapping[Sequence[str], str] = {
    ('database "', "does not exist"): "create it with tasker db upgrade, or correct the database name in the URL",
    ('role "', "does not exist"): "create the role (createuser {role}), or correct the user name in the URL",
    ("does not exist",): "correct the URL",
    ("authentication failed",): "correct the user name or the password in the URL",
    ("no pg_hba.conf entry",): "let the role {role} connect to {database} from this host (pg_hba.conf of the server)",
}
"""Hints for logins where retrying cannot help, by words of the server's answer."""
FULL_HINT = (
    "the server has no connection left: raise its max_connections or the connection limit, start fewer processes, or "
    "make common.database.pool.max_connections smaller; tasker doctor shows what the fleet needs"
)

_PLAIN: set[str] = set()
"""Servers (poolers) that refuse session settings at the start of a connection."""
_ANSWERED = re.compile(r"failed: \w+:  ")
"""Match for a message of the server: libpq puts a severity, in the server's language, before these only."""
_FULL = (
    "too many connections for",
    "too many clients already",
    "connection slots are reserved",
    "no more connections allowed",  # PgBouncer
)
"""Refusals by a server or pooler without a free connection (SQLSTATE 53300)."""
_STOPPED = "the database system is "
"""Refusal by a server that shuts down, starts or recovers (SQLSTATE 57P03): an outage, as if it did not run."""


def libpq_url(url: str) -> str:
    """Return the URL in the form that the driver needs; accepts `postgresql+psycopg://...` and `postgres://...` too.

    Raises `UsageError` for any other scheme.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or not re.fullmatch(r"postgres(ql)?(\+\w+)?", scheme):
        raise UsageError(
            "the database URL does not name a PostgreSQL database",
            hint="expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        )
    return f"postgresql://{rest}"


def with_statement_timeout(url: str, milliseconds: int) -> str:
    """Return the URL with this `statement_timeout` for its sessions, unless the URL already sets one."""
    if milliseconds == SESSION["statement_timeout"]:
        return url
    options = f"-c statement_timeout={milliseconds} {_parts(url).get('options', '')}".strip()
    bare = re.sub(r"(?<=[?&])options=[^&]*&?", "", url).rstrip("?&")
    return f"{bare}{'&' if '?' in bare else '?'}options={quote(options)}"


def describe_url(url: str) -> str:
    """Return the database and its host for messages, never the password."""
    parts = _parts(url)
    return f"database '{parts.get('dbname', '')}' on {parts.get('host', 'the local server')}"


def host_and_port(url: str) -> str:
    """Return HOST:PORT of each host, for messages."""
    parts = _parts(url)
    hosts, ports = str(parts.get("host", "localhost")).split(","), str(parts.get("port", 5432)).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))


def has_several_hosts(url: str) -> bool:
    """Return True for a URL with several hosts, of which any may answer."""
    return "," in str(_parts(url).get("host", ""))


def conninfo(url: str, *, settings: str = "", session: Mapping[str, int | str] = SESSION, **options: Any) -> str:
    """Return the driver's connection string.

    `NETWORK` and `session` apply unless the URL overrides them; `options`, `FIXED` and the encoding always apply.
    `settings` are additional session settings, as `-c name=value`. A server that refuses session settings gets none of
    them.
    """
    from psycopg.conninfo import make_conninfo

    parts = _parts(url)
    user_options = parts.pop("options", None) or os.environ.get("PGOPTIONS", "")
    chosen = {"options": f"{_options(session)} {user_options} {settings} {_options(FIXED)}"}
    session_options = {} if host_and_port(url) in _PLAIN else chosen
    return make_conninfo("", **{**NETWORK, **parts, **session_options, **options, "client_encoding": ENCODING})


def _options(settings: Mapping[str, int | str]) -> str:
    return " ".join(f"-c {name}={str(value).replace(' ', chr(92) + ' ')}" for name, value in settings.items())


def refuses_settings(url: str, error: Exception) -> bool:
    """Return True the first time that a server refuses the session settings: the caller then reconnects without them.

    Poolers refuse them because their sessions are shared by many clients (rule 22). Logs a warning once per server.
    """
    where = host_and_port(url)
    if "startup parameter" not in str(error) or where in _PLAIN:
        return False
    _PLAIN.add(where)
    _log.warning(
        "session_settings_refused server=%s: a pooler? Give the role its time-outs: "
        "alter role ... set statement_timeout = '30s', lock_timeout = '5s', tcp_user_timeout = '30s', jit = off",
        where,
    )
    return True


def connect(
    url: str, *, session: Mapping[str, int | str] = SESSION, **options: Any
) -> psycopg.Connection[tuple[Any, ...]]:
    """Open a connection in autocommit mode. Raises `DatabaseUnavailable` with the server's answer."""
    import psycopg

    try:
        # prepares nothing: behind a pooler a prepared statement may belong to another client
        info = conninfo(url, session=session, **options)
        connection = psycopg.connect(info, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        if not refuses_settings(url, error):
            raise unavailable(url, error) from None
        return connect(url, session=session, **options)
    if refused := unreadable(url, connection.info):
        connection.close()
        raise refused
    return connection


def unreadable(url: str, info: psycopg.ConnectionInfo) -> DatabaseUnavailable | None:
    """Return an error if the driver cannot read dates of this session: a pooler has not passed on the settings."""
    style = info.parameter_status("DateStyle") or "ISO"
    if style.startswith("ISO"):
        return None
    return DatabaseUnavailable(
        f"the sessions of {describe_url(url)} have the DateStyle '{style}', expected ISO",
        retryable=False,
        hint=f"a pooler leaves the settings of a session out; run: alter role {info.user} set datestyle = 'ISO, MDY'",
    )


def lost(url: str, error: Exception) -> str:
    """Return a one-line message for a lost connection."""
    return f"the connection to {describe_url(url)} was lost: {' '.join(str(error).split())}"


def unavailable(url: str, error: Exception) -> DatabaseUnavailable:
    """Return the error for a failed connection; it is not retryable if the server refuses this login permanently.

    The driver gives no SQLSTATE for it, only the server's text.
    """
    server_text = " ".join(str(error).split())
    message = f"cannot connect to {describe_url(url)}: {server_text}"
    if any(words in server_text for words in _FULL):
        return TooManyConnections(message, hint=FULL_HINT)
    hint = next((hint for words, hint in LOGIN_HINTS.items() if all(word in server_text for word in words)), None)
    is_refused = _ANSWERED.search(str(error)) and _STOPPED not in server_text
    kind = SessionRefused if is_refused else DatabaseUnavailable
    parts = _parts(url)
    advice = hint or "check the URL and that the server is running"
    names = {"database": parts.get("dbname", ""), "role": parts.get("user", "")}
    return kind(message, retryable=hint is None, hint=advice.format(**names))


def ensure_database(url: str) -> bool:
    """Create the database named by the URL unless it exists. Returns True if it was created.

    Raises `DatabaseUnavailable` if the server cannot be reached or refuses.
    """
    import psycopg
    from psycopg import sql

    name = _parts(url)["dbname"]
    with suppress(DatabaseUnavailable):  # the role may be allowed to connect only to this database
        connect(url).close()
        return False
    with connect(url, dbname=MAINTENANCE_DATABASE) as connection:
        if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone():
            return False
        template = "select pg_encoding_to_char(encoding) = 'UTF8' from pg_database where datname = 'template1'"
        is_utf8 = connection.execute(template).fetchone() == (True,)
        options = sql.SQL("" if is_utf8 else "encoding 'UTF8' template template0")
        try:
            connection.execute(sql.SQL("create database {} {}").format(sql.Identifier(name), options))
        except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            return False  # another process created it first
        except psycopg.Error as error:
            raise DatabaseUnavailable(f"cannot create {describe_url(url)}: {error}") from None
    return True


def _parts(url: str) -> dict[str, Any]:
    """Split the URL into its parts. Raises `UsageError` without the driver's message, which quotes the password."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    bare = libpq_url(url)
    if is_clear(bare):
        with suppress(psycopg.ProgrammingError):
            return conninfo_to_dict(bare)
    raise UsageError(f"the database URL cannot be read: {without_password(bare)}", hint=ENCODE)
