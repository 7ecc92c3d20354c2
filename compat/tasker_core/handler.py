"""Registry of handlers."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

from tasker.errors import TaskerError
from tasker.errors.resolution import ResolverNotFoundError
from tasker.handlers.registry.registry import HandlerRegistry as EngineRegistry
from tasker.handlers.registry.resolver import HandlerDefinition as EngineDefinition
from tasker.handlers.step_handler import StepHandler as EngineHandler
from tasker_core.models import HandlerWrapper
from tasker_core.registry import HandlerDefinition, ResolverChain
from tasker_core.step_handler.base import StepHandler
from tasker_core.template_discovery import HandlerDiscovery, TemplatePath

__all__ = ["HandlerRegistry", "StepHandler"]

log = logging.getLogger("tasker.registry")

HandlerSpec: TypeAlias = str | EngineDefinition | HandlerWrapper

PRELOADED = ("handlers", "step_handler", "workflow", "test")
"""Parts of the names of modules whose handlers `bootstrap_handlers` registers in the environment `test`."""


class HandlerRegistry(EngineRegistry):
    """Handlers by name; `instance()` has the handlers of this process's worker."""

    _view: ClassVar[HandlerRegistry | None] = None

    @classmethod
    def instance(cls, skip_bootstrap: bool = False) -> HandlerRegistry:
        """Return the shared registry, with the handlers named by its templates unless `skip_bootstrap`."""
        shared = EngineRegistry.instance(skip_bootstrap=True)
        view = HandlerRegistry._view
        if view is None or view.__dict__ is not shared.__dict__:
            view = HandlerRegistry._view = cls.__new__(cls)
            view.__dict__ = shared.__dict__
            if not skip_bootstrap:
                view.bootstrap_handlers()
        return view

    @classmethod
    def reset_instance(cls) -> None:
        """Remove the shared registry; the next `instance()` creates a new one."""
        EngineRegistry.reset_instance()
        HandlerRegistry._view = None

    def register(self, name: str, handler_class: Any) -> None:
        """Register a handler class. Raises `ValueError` for another type."""
        if not isinstance(handler_class, type) or not issubclass(handler_class, EngineHandler):
            raise ValueError(f"a handler is a subclass of StepHandler, found {handler_class!r}")
        super().register(name, handler_class)

    def unregister(self, name: str) -> bool:
        """Remove a name; return False if it was not registered."""
        return super().unregister(name)

    def resolve(self, handler_spec: Any) -> Any | None:
        """Return the handler of a name, a definition or a `HandlerWrapper`, or None if it is unknown or broken.

        Raises `ResolverNotFoundError` for a definition that names an unknown resolver.
        """
        definition = _definition(handler_spec)
        if definition is None:
            log.warning("%r is no name and no definition of a handler", handler_spec)
            return None
        try:
            return self.resolver_chain.resolve(definition, definition.initialization)
        except ResolverNotFoundError:
            raise
        except TaskerError as error:
            log.warning("%s: %s", definition.callable, error)
            return None

    @property
    def resolver_chain(self) -> ResolverChain:
        """The resolvers; custom ones can be added here."""
        return ResolverChain.over(self._chain)

    def list_handlers(self) -> list[str]:
        """Return the registered names, in the order of their registration."""
        return self._explicit.registered_callables()

    def clear(self) -> None:
        """Remove every registration."""
        super().clear()
        self.__dict__.pop("bootstrapped", None)

    def discover_handlers(self, package_name: str, base_class: type[Any] | None = None) -> int:
        """Register every handler with a name in a package and below it; return their number.

        A package that cannot be imported has none, and a module that cannot is skipped; the log gives the reason.
        """
        base = base_class or EngineHandler
        return sum(self._register_all(module, base) for module in _modules(package_name))

    def bootstrap_handlers(self) -> int:
        """Register the handlers named by templates, once; return the number of registered handlers.

        In the environment `test` those of loaded modules come first. `PYTHON_HANDLER_PATH` is read as well.
        """
        if self.__dict__.get("bootstrapped"):
            return self.handler_count()
        self.__dict__["bootstrapped"] = True
        loaded = super().bootstrap_handlers()
        preloaded = self._register_preloaded() if os.environ.get("TASKER_ENV") == "test" else 0
        return loaded + (preloaded or self._register_named_by_templates())

    def template_discovery_info(self) -> dict[str, Any]:
        """Return the folder of templates, and the handlers that they name."""
        folder = TemplatePath.find_template_config_directory()
        files = TemplatePath.discover_template_files(folder) if folder else []
        return {
            "template_path": str(folder) if folder else None,
            "template_files": [str(file) for file in files],
            "discovered_handlers": HandlerDiscovery.discover_all_handlers(folder) if folder else [],
            "handlers_by_namespace": HandlerDiscovery.discover_handlers_by_namespace(folder) if folder else {},
            "environment": os.environ.get("TASKER_ENV", "development"),
            "bootstrapped": bool(self.__dict__.get("bootstrapped")),
        }

    def _register_all(self, module: ModuleType, base: type) -> int:
        handlers = dict(_handlers(module, base))
        for name, cls in handlers.items():
            self.register(name, cls)
        return len(handlers)

    def _register_preloaded(self) -> int:
        loaded = [module for name, module in list(sys.modules.items()) if any(part in name for part in PRELOADED)]
        prefixes = ("tasker.", "tasker_core.")
        user_modules = [
            module for module in loaded if not getattr(module, "__name__", prefixes[0]).startswith(prefixes)
        ]
        return sum(self._register_all(module, StepHandler) for module in user_modules)

    def _register_named_by_templates(self) -> int:
        folder = TemplatePath.find_template_config_directory()
        named = HandlerDiscovery.discover_all_handlers(folder) if folder else []
        classes = [cls for cls in map(_class_at, named) if cls is not None and cls.handler_name]
        for cls in classes:
            self.register(cls.handler_name, cls)
        return len(classes)


def _definition(spec: Any) -> EngineDefinition | None:
    if isinstance(spec, str):
        return HandlerDefinition(callable=spec)
    if isinstance(spec, HandlerWrapper):
        return HandlerDefinition(spec.callable, spec.handler_method, spec.resolver, spec.initialization)
    return spec if isinstance(spec, EngineDefinition) else None


def _modules(package_name: str) -> Iterator[ModuleType]:
    try:
        package = importlib.import_module(package_name)
    except ImportError as error:
        log.error("the package %s cannot be imported: %s", package_name, error)
        return
    yield package
    for info in pkgutil.walk_packages(getattr(package, "__path__", []), f"{package_name}.", onerror=lambda name: None):
        try:
            yield importlib.import_module(info.name)
        except Exception as error:
            log.warning("the module %s is left out: %s: %s", info.name, type(error).__name__, error)


def _handlers(module: ModuleType, base: type) -> Iterator[tuple[str, type]]:
    for value in list(vars(module).values()):
        cls = vars(value).get("_handler_class") if inspect.isfunction(value) else value
        if isinstance(cls, type) and cls is not base and issubclass(cls, base):
            name: str = getattr(cls, "handler_name", "")
            yield from [(name, cls)] if name else []


def _class_at(path: str) -> type[EngineHandler] | None:
    module, _, name = path.rpartition(".")
    try:
        attribute = getattr(importlib.import_module(module), name, None) if module else None
    except Exception as error:
        log.debug("%s cannot be imported: %s", path, error)
        return None
    return attribute if isinstance(attribute, type) and issubclass(attribute, EngineHandler) else None
