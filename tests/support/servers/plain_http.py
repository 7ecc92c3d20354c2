"""Asking servers of tests over plain http."""

from __future__ import annotations

import ssl

import httpx

PLAIN = httpx.Client(
    verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), limits=httpx.Limits(max_keepalive_connections=0), timeout=60
)
"""Reads no certificates, which takes 20 ms of CPU for each request of `httpx.get`; a server that was restarted finds no
old connection, and one on a machine that stalls has a minute."""
