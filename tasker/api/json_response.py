"""Answers in JSON."""

from __future__ import annotations

from typing import Any

import orjson
import pydantic_core
from starlette.responses import Response


class Json(Response):
    """Plain data as JSON, encoded once and in native code; times become ISO 8601 in UTC."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes of the answer."""
        try:
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
        except TypeError:  # a whole number beyond 64 bits: values of tasks may have them, and 1e20 comes back as one
            return pydantic_core.to_json(content)
