"""Resolvers that a module of handlers brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasker.errors import HandlerNotFound
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.workflows.handlers import load_handlers, require_handlers
from tests.unit.handlers.support import plan_of, step_plan

HOMES = {"tasker": "tasker.registry", "tasker_core": "tasker_core.handler"}
ADDS_ITS_RESOLVER = """
from {registry} import HandlerRegistry
from {package}.registry import RegistryResolver
from {package}.step_handler import StepHandler


class Pay(StepHandler):
    handler_name = "pay"

    def call(self, context):
        return self.success({{"paid": True}})


class Services(RegistryResolver):
    _name = "services_of_{package}"
    prefix = "service-of-{package}://"

    def resolve_handler(self, definition, config):
        return Pay()


HandlerRegistry.instance(skip_bootstrap=True).resolver_chain.add_resolver(Services())
"""


@pytest.mark.parametrize("package", ["tasker", "tasker_core"])
def test_a_resolver_that_a_module_of_handlers_adds_is_asked_by_the_registry_that_loaded_it(
    package: str, tmp_path: Path
) -> None:
    (tmp_path / "handlers.py").write_text(ADDS_ITS_RESOLVER.format(package=package, registry=HOMES[package]))
    plan = plan_of(step_plan("a", f"service-of-{package}://pay"))
    HandlerRegistry.reset_instance()
    try:
        with pytest.raises(HandlerNotFound):
            require_handlers(load_handlers([]), plan)
        require_handlers(load_handlers([tmp_path / "handlers.py"]), plan)
    finally:
        HandlerRegistry.reset_instance()
