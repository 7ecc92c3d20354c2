"""Trusted and client certificates, from the query of a URL: `tls://host?cafile=FILE`."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tasker.errors import MessagingError

FILES = ("cafile", "certfile", "keyfile")
"""Allowed query keys of a URL, the same as for RabbitMQ."""


def files_of(urls: str) -> Mapping[str, str]:
    """Return the files named by the URLs, which are separated by commas; all servers of a cluster share them.

    Raises `MessagingError` for other query keys, for two files of a kind, and for a key without a certificate.
    """
    paths: dict[str, str] = {}
    for url in urls.split(","):
        for name, path in parse_qsl(urlsplit(url).query, keep_blank_values=True):
            if name not in FILES or not path:
                raise _refused(f"has no setting {name!r} in its URL" if path else f"has {name} without a file")
            if paths.setdefault(name, path) != path:
                raise _refused(f"is given two files as {name}; all servers of a cluster take the same")
    if "keyfile" in paths and "certfile" not in paths:
        raise _refused("is given a key without a certificate")
    return paths


def plain(urls: str) -> list[str]:
    """Return the URLs without their queries."""
    return [urlunsplit(urlsplit(url)._replace(query="")) if "?" in url else url for url in urls.split(",")]


def context(files: Mapping[str, str]) -> ssl.SSLContext:
    """Create the TLS context of connections. Raises `MessagingError` for an unusable file."""
    try:
        made = ssl.create_default_context(cafile=files.get("cafile"))
        if "certfile" in files:
            made.load_cert_chain(files["certfile"], files.get("keyfile"))
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(f"{name}={path}" for name, path in files.items())
        raise _refused(f"cannot use the files of its URL ({named}): {error}") from error
    return made


def _refused(problem: str) -> MessagingError:
    hint = f"a URL may name {', '.join(FILES)}, each a file of PEM: tls://host:4222?cafile=/etc/tasker/ca.pem"
    return MessagingError(f"nats {problem}", retryable=False, hint=hint)
