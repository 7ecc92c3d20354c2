"""Output of the `tasker config` commands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tasker.redaction import REDACTED, is_secret, redacted, without_password
from tasker.services.configuration.loading import Configuration, ConfigurationInvalid
from tasker.services.configuration.sources import ROOTS
from tasker.services.configuration.warnings import overridden_variables
from tasker.settings.catalogue import Parameter, accepted, by_path, is_live, pattern_of, set_paths, tables
from tasker.settings.check import SettingProblem, render
from tasker.settings.nested import covering, nested
from tasker.settings.refused_keys import REFUSED
from tasker.settings.toml_text import toml_text, toml_value

if TYPE_CHECKING:
    from tasker.services.configuration.connectivity import ConnectivityResult

Result = Configuration | ConfigurationInvalid


def as_text(results: Sequence[Result], files: Sequence[str] = (), tried: Sequence[ConnectivityResult] = ()) -> str:
    """Render the result of `validate`: each problem once, or the summaries and the results of the connection test.

    `files` are the files that were read.
    """
    problems = _problems(results)
    origin = f" from {', '.join(files)}" if files else ""
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        return f"{render(problems)}\n\nConfiguration{origin} is not valid: {count}"
    good = [result for result in results if isinstance(result, Configuration)]
    head = [f"✓ Configuration loaded{origin}", "✓ Validation passed", "Configuration is valid!"]
    lines = [
        f"✗ {connection.what}: {connection.reason}" if connection.reason else f"✓ Connected to {connection.what}"
        for connection in tried
    ]
    return "\n".join([*head, *map(_summary, good), *([""] if lines else []), *lines])


def as_json(
    results: Sequence[Result], warnings: Sequence[str] = (), tried: Sequence[ConnectivityResult] | None = None
) -> str:
    """Render the result of `validate` as a JSON object; `connectivity` is present only if it was tested."""
    problems = [problem.to_dict() for problem in _problems(results)]
    reached = {} if tried is None else {"connectivity": [asdict(connection) for connection in tried]}
    report = {"valid": not problems, "problems": problems, "warnings": list(warnings), **reached}
    return json.dumps(report, indent=2)


def _problems(results: Sequence[Result]) -> list[Any]:
    problems = [
        problem for result in results if isinstance(result, ConfigurationInvalid) for problem in result.problems
    ]
    return list({str(problem): problem for problem in problems}.values())


def _summary(configuration: Configuration) -> str:
    common = configuration.settings.common
    prefixes = tuple(
        f"{root}.mpsc_channels."
        for root in {"common", *(ROOTS if configuration.context == "complete" else [configuration.context])}
    )
    channels = sum(1 for path in by_path() if path.startswith(prefixes) and path.endswith("_buffer_size"))
    breakers = len(type(common.circuit_breakers.component_configs).declared)
    rows = {
        "Context": configuration.context,
        "Environment": configuration.environment,
        "Database": without_password(common.database.url) or "embedded",
        "Messaging": common.queues.backend,
        "Database pool": f"{common.database.pool.max_connections} connections",
        "Circuit breakers": f"{breakers} configurations",
        **_own_rows(configuration),
        "Channels": str(channels),
    }
    return "\n" + "\n".join(f"  {f'{name}:':<18} {value}" for name, value in rows.items())


def _own_rows(configuration: Configuration) -> dict[str, str]:
    orchestration, worker = configuration.settings.orchestration, configuration.settings.worker
    if configuration.context == "common":
        return {}
    if configuration.context == "worker":
        return {"Deployment mode": worker.event_systems.worker.deployment_mode}
    return {"Deployment mode": orchestration.event_systems.orchestration.deployment_mode}


def within(others: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """Select the values of a parameter or table, or all if there is no key; secrets are redacted."""
    inside = {path: value for path, value in others.items() if not key or f"{path}.".startswith(f"{key}.")}
    return {path: REDACTED if is_secret(path.rpartition(".")[2], value) else value for path, value in inside.items()}


def others_lines(others: Mapping[str, Any]) -> list[str]:
    """Return a note with the values that other kinds of process use."""
    text = ", ".join(f"{path} = {toml_value(value)}" for path, value in others.items())
    return [f"Note: a worker or an orchestrator uses {text}; choose one with --context worker"] if text else []


def shown(
    configuration: Configuration, key: str | None, form: str, others: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """Render the values in effect as TOML or JSON, secrets redacted. `others` are values of other kinds of process."""
    values, hidden = redacted(configuration.values())
    if form == "json":
        part = _part(values, key) if key else values
        metadata: dict[str, Any] = {"context": configuration.context, "redacted_fields": hidden}
        if others:
            metadata["other_processes"] = dict(others)
        return (
            json.dumps(
                {"environment": configuration.environment, "values": part, "metadata": metadata}, indent=2, default=str
            )
            + "\n"
        )
    return toml_text(nested({key: _part(values, key)}) if key else values)


def _part(values: Any, key: str) -> Any:
    for name in key.split("."):
        values = values[name]
    return values


def explained(
    path: str,
    configuration: Configuration | None,
    problem: SettingProblem | None = None,
    others: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return all facts about a parameter or a table; `value` and `set_by` only with a configuration.

    For an invalid parameter the problem replaces them. `others` are values that other kinds of process use.
    """
    parameter = by_path().get(pattern_of(path))
    if parameter is None:
        known = [other for other, _ in set_paths(configuration.values())] if configuration else by_path()
        inside = [other for other in known if other.startswith(f"{path}.")]
        extra = {"other_processes": differing} if (differing := within(others, path)) else {}
        values = {inner_path: _value(inner_path, configuration) for inner_path in inside}
        return {"table": path, "meaning": tables()[pattern_of(path)], "parameters": values, **extra}
    in_effect = {"value": _value(path, configuration), "set_by": configuration.origin(path)} if configuration else {}
    if configuration and (overruled := dict(overridden_variables(configuration)).get(path)):
        in_effect["note"] = overruled
    for value in within(others, path).values():
        in_effect["other_processes"] = f"{toml_value(value)} (--context worker)"
    if problem:
        in_effect = {"problem": f"{problem.issue}. {problem.fix}", "written_in": problem.place or "-"}
    return {"parameter": path, **in_effect, **_known(parameter)}


def _value(path: str, configuration: Configuration | None) -> Any:
    value = configuration.value(path) if configuration else by_path()[pattern_of(path)].default
    return REDACTED if is_secret(path.rpartition(".")[2], value) else value


def _known(parameter: Parameter) -> dict[str, Any]:
    default = parameter.default
    facts = {
        "default": default,
        "default_of_a_single_process": parameter.single_process,
        "type": parameter.kind,
        "range": parameter.range,
        "meaning": parameter.meaning,
        "advice": parameter.advice,
        "variables": list(parameter.variables) or None,
        "table": parameter.table,
        "reserved_for": parameter.reserved,
        "takes_effect": "at SIGHUP, and at the next start" if is_live(parameter.path) else "at the next start",
        "related": list(parameter.related) or None,
        "example": f"[{parameter.path.rpartition('.')[0]}] {parameter.name} = {toml_value(default)}",
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def explanation_text(facts: dict[str, Any]) -> str:
    """Render the facts as text."""
    if "table" in facts and "parameters" in facts:
        rows = [f"  {path} = {toml_value(value)}" for path, value in facts["parameters"].items()]
        notes = others_lines(facts.get("other_processes", {}))
        return "\n".join([f"[{facts['table']}]  {facts['meaning']}", *rows, *notes])
    path = facts.pop("parameter")
    head = f"{path} = {toml_value(facts.pop('value'))}" if "value" in facts else path
    return "\n".join([head, *(_line(name, fact) for name, fact in facts.items())])


def _line(name: str, fact: Any) -> str:
    words = name.replace("_", " ").capitalize()
    label = "Default of `run`, `dev`" if name == "default_of_a_single_process" else words
    if name.startswith("default"):
        fact = toml_value(fact)
    text = ", ".join(fact) if isinstance(fact, list) else str(fact)
    return fill(f"{label}: {text}", 116, initial_indent="  ", subsequent_indent="      ", break_long_words=False)


def difference(path: str, one: Any, other: Any) -> dict[str, Any]:
    """Return a difference as plain data; the values of a secret are redacted."""
    name = path.rpartition(".")[2]
    left, right = (_difference(name, value) for value in (one, other))
    return {"path": path, "one": left, "other": right}


def _difference(name: str, value: Any) -> str:
    if value is None:
        return "not set"
    return toml_value(redacted({name: value})[0][name])


def nearest(key: str) -> str:
    """Return a hint for an unknown key: the reason why it is not supported, or similar keys."""
    if reason := covering(key, REFUSED):
        return reason
    known = accepted()
    ends = [path for path in known if path.endswith(f".{key}")]
    close = ends[:5] or get_close_matches(key, known, 3, 0.5)
    return f"did you mean {', '.join(close)}?" if close else "`tasker config docs` lists every setting"
