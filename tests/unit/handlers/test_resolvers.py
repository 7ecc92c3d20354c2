from __future__ import annotations

import logging
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tasker.errors import ConfigurationError, HandlerLoadError, MethodNotFound, ResolutionError, ResolverNotFoundError
from tasker.handlers.registry import resolvers as entry_points
from tasker.registry import (
    BaseResolver,
    ClassLookupResolver,
    EntryPointResolver,
    HandlerDefinition,
    MethodDispatchWrapper,
    RegistryResolver,
    ResolverChain,
)
from tasker.step_handler import StepHandler, step_handler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.handlers.support import ServiceDiscoveryResolver, context


class Payment(StepHandler):
    handler_name = "payment"

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"did": "call"})

    def refund(self, context: StepContext) -> StepHandlerResult:
        return self.success({"did": "refund"})

    def _secret(self, context: StepContext) -> StepHandlerResult:
        return self.success({"did": "secret"})


class Services(RegistryResolver):
    prefix = "service://"
    _name = "services"
    _priority = 50

    def resolve_handler(self, definition: HandlerDefinition, config: dict[str, Any]) -> Any | None:
        return Payment()


def chain_with(**handlers: Any) -> ResolverChain:
    chain = ResolverChain.default()
    for name, handler in handlers.items():
        chain.register(name, handler)
    return chain


def call(chain: ResolverChain, callable: str, **definition: Any) -> Any:
    handler = chain.resolve(HandlerDefinition(callable, **definition))
    return handler and handler.call(context()).result


def test_the_chain_goes_by_priority_not_by_registration() -> None:
    chain = ResolverChain.default().add_resolver(Services())
    assert chain.list_resolvers() == [
        ("explicit_mapping", 10), ("module_names", 20), ("services", 50), ("builtin", 80), ("entry_points", 90),
        ("class_lookup", 100),
    ]  # fmt: skip
    assert call(chain, "service://pay") == {"did": "call"}
    assert chain.resolver_names == [r.name for r in chain.resolvers]
    assert chain.chain_info()[0] == {"name": "explicit_mapping", "priority": 10, "callables": 0}


def test_a_class_is_made_a_decorated_function_is_wrapped_an_object_is_taken() -> None:
    @step_handler("double")
    def double(context: StepContext) -> Any:
        return {"did": "function"}

    def plain(anything: StepContext) -> Any:
        return {"did": anything.step_name}

    chain = chain_with(a=Payment, b=double, c=Payment(), d=plain)
    assert [call(chain, name) for name in "abcd"] == [
        {"did": "call"}, {"did": "function"}, {"did": "call"}, {"did": "charge"},
    ]  # fmt: skip


def test_nobody_knows_it() -> None:
    assert ResolverChain.default().resolve(HandlerDefinition("nothing_like_it")) is None
    assert ResolverChain().can_resolve(HandlerDefinition("x")) is False


def test_a_method_may_be_the_entry() -> None:
    handler = chain_with(pay=Payment).resolve(HandlerDefinition("pay", "refund"))
    assert isinstance(handler, MethodDispatchWrapper)
    assert handler.call(context()).result == {"did": "refund"}
    assert (handler.target_method, handler.unwrap() is handler.handler) == ("refund", True)


@pytest.mark.parametrize("method", ["void", "_secret", "__init__", "handler_name"])
def test_a_method_that_is_no_public_method_is_refused(method: str) -> None:
    with pytest.raises(MethodNotFound, match=f"Handler 'payment' does not respond to '{method}'") as caught:
        chain_with(pay=Payment).resolve(HandlerDefinition("pay", method))
    assert caught.value.hint == "its own public methods: handler_name, call, refund"


def test_a_hint_goes_past_the_order() -> None:
    chain = chain_with(**{"service://pay": step_handler("x")(lambda: {"did": "explicit"})}).add_resolver(Services())
    assert call(chain, "service://pay", resolver="services") == {"did": "call"}


@pytest.mark.parametrize("hint", ["nobody", "class_lookup"])
def test_a_hint_that_leads_nowhere_falls_back_with_a_warning(hint: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tasker.registry"):
        assert call(chain_with(pay=Payment), "pay", resolver=hint) == {"did": "call"}
    assert f"resolver '{hint}'" in caplog.text


def test_a_resolver_can_be_taken_out_and_replaced() -> None:
    chain = ResolverChain.default()
    assert chain.remove_resolver("entry_points") is not None
    assert chain.remove_resolver("entry_points") is None
    assert len(chain.add_resolver(Services()).add_resolver(Services()).resolvers) == 5
    chain.remove_resolver("explicit_mapping")
    chain.remove_resolver("module_names")
    assert chain.explicit_resolver is None
    with pytest.raises(ResolverNotFoundError):
        chain.register("a", Payment)


@pytest.mark.parametrize(
    ("attributes", "fits"),
    [
        ({"pattern": r"svc-\d+"}, ["svc-1"]),
        ({"_match_pattern": r"svc-\d+"}, ["svc-1"]),
        ({"prefix": "svc"}, ["svc-1", "svc-x"]),
        ({}, ["svc-1", "svc-x", "other"]),
    ],
)
def test_a_resolver_of_ones_own_takes_one_shape(attributes: dict[str, str], fits: list[str]) -> None:
    cls: Any = type("Own", (Services,), {"prefix": None, **attributes})
    own: BaseResolver = cls()
    found = [name for name in ("svc-1", "svc-x", "other") if own.resolve(HandlerDefinition(name))]
    assert found == [name for name in ("svc-1", "svc-x", "other") if own.can_resolve(HandlerDefinition(name))] == fits


def test_a_definition_reads_both_names_of_the_method() -> None:
    for key in ("method", "handler_method"):
        read = HandlerDefinition.from_dict(
            {"callable": "a", key: "refund", "resolver": "r", "initialization": {"x": 1}}
        )
        assert (read.method, read.uses_method_dispatch(), read.has_resolver_hint()) == ("refund", True, True)
    assert HandlerDefinition.from_callable("a").effective_method() == "call"
    with pytest.raises(ConfigurationError, match="needs a callable"):
        HandlerDefinition.from_dict({"method": "call"})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package with a handler class, a function and a module that fails."""
    folder = tmp_path / "shop_under_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "pay.py").write_text(
        "from tasker.step_handler import StepHandler, step_handler\n"
        "class Pay(StepHandler):\n    def call(self, context): return self.success({'did': 'pay'})\n"
        "@step_handler('ship')\ndef ship(): return {'did': 'ship'}\n"
        "NUMBER = 5\n"
    )
    (folder / "broken.py").write_text("x = 1\nraise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder.name
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_a_dotted_path_is_imported(package: str) -> None:
    chain = ResolverChain.default()
    assert call(chain, f"{package}.pay.Pay") == {"did": "pay"}
    assert call(chain, f"{package}::pay::Pay") == {"did": "pay"}
    assert call(chain, f"{package}.pay.ship") == {"did": "ship"}


@pytest.mark.parametrize("path", ["{0}.pay.Nobody", "{0}.nowhere.Pay", "no_such_package.Pay", "Pay", "a..b", "x.1"])
def test_a_path_that_leads_nowhere_is_nobodys(package: str, path: str) -> None:
    assert ClassLookupResolver().resolve(HandlerDefinition(path.format(package))) is None


def test_a_module_that_fails_is_an_error_with_its_place(package: str) -> None:
    with pytest.raises(HandlerLoadError, match=r"broken\.py:2: RuntimeError: no licence"):
        ResolverChain.default().resolve(HandlerDefinition(f"{package}.broken.Pay"))


def test_something_else_at_the_path_is_an_error(package: str) -> None:
    with pytest.raises(HandlerLoadError, match="is a int, not a handler"):
        ResolverChain.default().resolve(HandlerDefinition(f"{package}.pay.NUMBER"))


def test_a_handler_that_cannot_be_made_is_an_error() -> None:
    class Needy(Payment):
        def __init__(self, key: str) -> None:
            self.key = key

    with pytest.raises(HandlerLoadError, match=r"Needy\(\) failed: TypeError") as caught:
        chain_with(needy=Needy).resolve(HandlerDefinition("needy"))
    assert caught.value.hint == "a handler is made without arguments; read settings from context.step_config"


def declared(monkeypatch: pytest.MonkeyPatch, **points: str) -> EntryPointResolver:
    made = [EntryPoint(name.rstrip("_"), value, entry_points.GROUP) for name, value in points.items()]
    monkeypatch.setattr(entry_points, "offered", lambda group: tuple(made))
    return EntryPointResolver()


def test_installed_packages_offer_handlers_and_modules(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = declared(monkeypatch, payment=f"{package}.pay:Pay", all=f"{package}.pay")
    for name in ("payment", "ship", "Pay", f"{package}.pay.Pay"):
        assert resolver.resolve(HandlerDefinition(name)) is not None
    assert resolver.resolve(HandlerDefinition("nobody")) is None
    assert {"payment", "ship"} <= set(resolver.registered_callables())


def test_nothing_is_imported_before_it_is_needed(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = declared(monkeypatch, broken=f"{package}.broken:Pay", payment=f"{package}.pay:Pay")
    assert resolver.resolve(HandlerDefinition("payment")) is not None
    with pytest.raises(HandlerLoadError, match="the entry point 'broken'"):
        resolver.resolve(HandlerDefinition("broken"))


def test_two_packages_that_claim_one_name_are_both_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = declared(monkeypatch, pay=f"{package}.pay:Pay", pay_="other.module:Pay")
    with pytest.raises(HandlerLoadError) as caught:
        resolver.resolve(HandlerDefinition("pay"))
    assert f"{package}.pay:Pay" in str(caught.value)
    assert "other.module:Pay" in str(caught.value)


async def test_a_resolver_in_the_published_form_is_used_also_where_a_loop_runs() -> None:
    chain = ResolverChain.default().register(ServiceDiscoveryResolver({"pay": Payment}))
    assert ("service_discovery", 50) in chain.list_resolvers()
    assert chain.chain_info()[2]["name"] == "service_discovery"
    definition = HandlerDefinition("service://pay")
    assert chain.can_resolve(definition)
    assert call(chain, "service://pay") == {"did": "call"}
    assert call(chain, "service://pay", handler_method="refund", resolver="service_discovery") == {"did": "refund"}
    with pytest.raises(ResolutionError, match="no service 'gone' in region 'north'"):
        chain.resolve(HandlerDefinition("service://gone"), {"region": "north"})


def test_a_resolver_without_the_methods_of_either_form_cannot_be_made() -> None:
    class Nameless(BaseResolver):
        def priority(self) -> int:  # type: ignore[override]
            return 50

    with pytest.raises(TypeError, match="abstract"):
        Nameless()  # type: ignore[abstract]
