"""The parameters that something reads, and other values for them."""

from __future__ import annotations

from typing import Any

from tasker.settings.catalogue import Parameter, parameters
from tasker.settings.check import check
from tasker.settings.model import Settings
from tasker.settings.nested import nested

READ = [parameter for parameter in parameters() if not parameter.reserved]


def path_of(value: Any) -> str | None:
    """The name of a test about a parameter."""
    return value.path if isinstance(value, Parameter) else None


def candidates(parameter: Parameter) -> list[Any]:
    """Values beside the default, some of which are legal."""
    default = parameter.default
    if parameter.choices:
        return [choice for choice in parameter.choices if choice != default]
    if isinstance(default, bool):
        return [not default]
    if parameter.low is not None:
        near = 1 if parameter.kind == "whole number" else 0.05
        return [default + near, default - near]
    if parameter.kind == "list":
        endpoint = {"name": "another", "url": "https://another", "secrets": []}
        return [
            ["7"],
            [7],
            ["another"],
            ["https://another"],
            ["10.0.0.0/8"],
            ["payments never KeyError"],
            ["env:ANOTHER"],
            [f"whsec_{'c2VjcmV0' * 4}"],
            [{"key": "as-long-as-a-key-must-be"}],
            [endpoint],
            ["whsec_" + "a" * 32],
        ]
    urls = [f"{scheme}://elsewhere/7" for scheme in ("postgresql", "amqp", "redis", "nats", "http")]
    return [*urls, "elsewhere:7777", "another", "orchestration_another", "/another", "another=7", "30/m"]


def companions(path: str) -> dict[str, Any]:
    """What must be set beside a parameter so that it is legal."""
    if path.endswith(".auth.enabled"):
        return {f"{path.removesuffix('enabled')}api_key": "as-long-as-a-key-must-be"}
    if path == "common.retention.pending_days":  # of the dead letters whose tasks are to be deleted
        return {"common.retention.failed_days": 1}
    if path == "limits.NAME.burst":
        return {"limits.NAME.rate": "7/s"}
    root, _, plugin = path.partition(".")
    return {"plugins.enabled": [plugin.partition(".")[0]]} if root == "plugins" and "." in plugin else {}


def changed(parameter: Parameter) -> list[tuple[Any, Settings]]:
    """Every candidate that is legal, with the default settings but for it and its companions."""
    beside = companions(parameter.path)
    results = [(value, check(nested({parameter.path: value, **beside})).settings) for value in candidates(parameter)]
    found = [(value, settings) for value, settings in results if settings is not None]
    assert found, parameter.path
    return found
