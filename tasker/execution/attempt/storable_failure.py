"""Failures that the database accepts: the report of an attempt must not itself be refused (design rule 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasker.contracts.execution import Failure
from tasker.errors import NotStorable
from tasker.lifecycle.storable import WARN_BYTES, as_stored, encode

MAX_MESSAGE = 10_000
"""Maximum length of a stored message in characters."""


def make_storable(failure: Failure) -> Failure:
    """Return the failure with every text and every metadata value in a form that can be stored.

    The metadata key `left_out` names the values that could not be stored.
    """
    return replace(
        failure,
        message=_shortened(_text(failure.message)),
        error_type=_text(failure.error_type),
        error_code=None if failure.error_code is None else _text(str(failure.error_code)),
        metadata=_metadata(failure.metadata),
    )


def _metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        # a copy, since the handler's author may still change the original
        return dict(as_stored(encode(metadata, limit_bytes=WARN_BYTES)))
    except NotStorable:
        return _kept(metadata)


def _kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the keys that can be stored: a traceback is worth keeping even if a value beside it is not JSON."""
    kept: dict[str, Any] = {}
    left_out: list[str] = []
    for key, value in metadata.items():
        try:
            kept |= as_stored(encode({key: value}, limit_bytes=WARN_BYTES // 4))
        except NotStorable as problem:
            left_out.append(_shortened(_text(str(problem))))
    return kept | {"left_out": left_out}


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _shortened(text: str) -> str:
    cut = len(text) - MAX_MESSAGE
    return text if cut <= 0 else f"{text[:MAX_MESSAGE]}... ({cut} more characters)"
