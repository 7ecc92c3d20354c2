"""RSA keys: generation, loading, and refusal of weak ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

LEAST_BITS = 2048


def generate(bits: int) -> tuple[str, str]:
    """Return a new key pair as PEM: the private key and the public key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    made = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    pem = serialization.Encoding.PEM
    private = made.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = made.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def public_key(pem: str, where: str) -> RSAPublicKey:
    """Load a public key. Raises `UsageError` for an invalid one or less than 2,048 bits; `where` names the text."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(pem.encode())
    except ValueError:
        raise UsageError(
            f"{where} is not a public key", hint="expected PEM: `tasker auth generate-keys` makes a pair"
        ) from None
    if not isinstance(found, RSAPublicKey):
        raise UsageError(f"{where} is not an RSA key", hint="tokens are signed with RS256")
    require_strong(found.key_size, where)
    return found


def private_key(pem: str, where: str) -> RSAPrivateKey:
    """Load a private key; see `public_key`. A key with a password is refused."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        found = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        raise UsageError(
            f"{where} is not a private key without a password",
            hint="expected PEM: `tasker auth generate-keys` makes a pair",
        ) from None
    if not isinstance(found, RSAPrivateKey):
        raise UsageError(f"{where} is not an RSA key", hint="tokens are signed with RS256")
    require_strong(found.key_size, where)
    return found


def require_strong(bits: int, where: str) -> None:
    """Raise `UsageError` for a key of less than 2,048 bits."""
    if bits < LEAST_BITS:
        raise UsageError(f"{where} has {bits} bits", hint=f"use a key of at least {LEAST_BITS} bits")
