"""Part of `StepContext` that reads child tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasker.handlers.child_pages import Children, ReadPage


class ReadingChildren:
    """Part of `StepContext` that reads the child tasks of steps above."""

    if TYPE_CHECKING:
        _children: ReadPage | None

    def children(self, step_name: str) -> Children:
        """Return the child tasks of a step with `type: task` above, in the order of its list, read in pages.

        Iterate with `for child in context.children("videos")`, in an async handler with `async for`. Each has `index`,
        `task_uuid`, `state` (`succeeded` or `failed`), `output` and `error`.
        """
        from tasker.handlers.child_pages import Children  # few handlers read it

        return Children(step_name, self._children)
