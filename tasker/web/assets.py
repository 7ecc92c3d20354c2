"""Static files of the web UI: styles, scripts, images."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

from tasker.version import __version__

FOLDER = Path(__file__).parent / "static"


@cache
def revision() -> str:
    """Return a digest that changes with any file, so that browsers may cache the files forever."""
    digest = blake2b(__version__.encode(), digest_size=6)
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()
