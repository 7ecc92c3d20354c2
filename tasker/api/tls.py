"""TLS certificate and key of a server."""

from __future__ import annotations

import ssl

from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Certificate with its intermediate certificates, and its private key: the paths of two PEM files."""

    certificate: str
    key: str


def tls_files(certificate: str, key: str) -> TlsFiles | None:
    """Return the files, or None if neither is configured. Raises `UsageError` if one is missing or the two do not
    match."""
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "tls_key_path" if certificate else "tls_certificate_path"
        raise UsageError(f"{missing} is not set", hint="https needs a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(
            certificate, key, password=lambda: ""
        )  # an encrypted key must not prompt for its password at the terminal
    except OSError as error:  # includes `SSLError`
        reason = "they do not match, or are not PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(
            f"tls_certificate_path ({certificate}) and tls_key_path ({key}) cannot be used: {reason}",
            hint="name a certificate and its private key without a password, both in PEM",
        ) from None
    return TlsFiles(certificate, key)
