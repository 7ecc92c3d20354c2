"""Second names of handlers that were loaded from modules: class name and dotted name."""

from __future__ import annotations

import logging
from typing import Any

from tasker.registry.resolvers.explicit_mapping import ExplicitMappingResolver

log = logging.getLogger("tasker.registry")


class ModuleNamesResolver(ExplicitMappingResolver):
    """Like the explicit mapping, one place behind it. A name that two handlers share leads to neither."""

    def __init__(self, name: str = "module_names") -> None:
        super().__init__(name)
        self._shared: set[str] = set()

    @property
    def priority(self) -> int:
        """After the explicit mapping."""
        return 20

    def offer(self, key: str, handler: Any) -> None:
        """Register unless another handler has the name too; then the name is dropped with a warning."""
        known = self.get(key)
        if key in self._shared:
            return
        if known is not None and known is not handler:
            self._shared.add(key)
            self.unregister(key)
            log.warning("%r names two handlers and is not used: call each by its handler_name", key)
            return
        self.register(key, handler)

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._shared.clear()
