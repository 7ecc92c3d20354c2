"""Keys that are accepted and checked, and that no code reads yet: path -> the part that will read them.

Setting one to something other than its default prints a warning at the start. This list only shrinks: whoever writes
the reader takes the path out, and a test fails while a key here is read or a key elsewhere is not.
"""

from __future__ import annotations

from collections.abc import Mapping

PENDING: Mapping[str, str] = {
}
"""A path stands for everything below it."""
