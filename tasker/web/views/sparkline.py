"""Small line chart drawn by the server without scripts."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, MARGIN = 120, 24, 2


def points(values: Sequence[float], highest: float | None = None) -> str:
    """Return the points of an SVG polyline of `WIDTH` by `HEIGHT`; `highest` is the value at the top."""
    top = max(highest if highest is not None else max(values, default=0), 1)
    step = WIDTH / max(1, len(values) - 1)
    return " ".join(f"{place * step:.1f},{_height(value / top):.1f}" for place, value in enumerate(values))


def _height(share: float) -> float:
    return HEIGHT - MARGIN - min(1.0, share) * (HEIGHT - 2 * MARGIN)
