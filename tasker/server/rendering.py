"""JSON answers."""

from __future__ import annotations

from typing import Any

import orjson
import pydantic_core
from starlette.responses import Response


class Json(Response):
    """Answer whose data is encoded as JSON once, in native code; times become ISO 8601 in UTC."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
        except TypeError:  # integer beyond 64 bits: values of tasks may contain one, and 1e20 comes back as one
            return pydantic_core.to_json(content)
