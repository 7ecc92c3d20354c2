"""Writes the description of the HTTP interface, docs/reference/openapi.json.

python -m tools.openapi
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "reference" / "openapi.json"


def main() -> None:
    """Renews the document in place."""
    FILE.write_text(current())


def current() -> str:
    """The description of the interface as it is."""
    from tasker.server.application import described

    return json.dumps(described().openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
