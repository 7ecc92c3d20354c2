"""Drawings of a plan (Mermaid, Graphviz, a tree for the terminal) and its graph as data."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.plan import Plan
from tasker.template.draw.data import graph_data
from tasker.template.draw.dot import draw_dot
from tasker.template.draw.mermaid import draw_mermaid
from tasker.template.draw.tree import draw_text

FORMATS: dict[str, Callable[[Plan], str]] = {"mermaid": draw_mermaid, "dot": draw_dot, "text": draw_text}
"""Drawing functions by format name."""

__all__ = ["FORMATS", "draw_dot", "draw_mermaid", "draw_text", "graph_data"]
