"""What a server encrypts with."""

from __future__ import annotations

import ssl

from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM: the certificate with those between it and a known one, and its private key."""

    certificate: str
    key: str


def tls_files(certificate: str, key: str) -> TlsFiles | None:
    """The pair; None where neither is named. Raises `UsageError` for one alone, and for files that do not fit."""
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "tls_key_path" if certificate else "tls_certificate_path"
        raise UsageError(f"{missing} is not set", hint="https needs a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(
            certificate, key, password=lambda: ""
        )  # one that is locked must not ask at the terminal
    except OSError as error:  # an `SSLError` is one
        reason = "they do not fit each other, or are no PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(
            f"tls_certificate_path ({certificate}) and tls_key_path ({key}) cannot be used: {reason}",
            hint="name a certificate and its private key without a password, both in PEM",
        ) from None
    return TlsFiles(certificate, key)
