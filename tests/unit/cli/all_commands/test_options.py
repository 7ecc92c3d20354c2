"""What every command takes: names, types, bounds and defaults of its arguments and options."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from tests.support.recorded import assert_recorded
from tests.unit.cli.all_commands.tree import PLUGINS, commands


def test_every_command_takes_what_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKER_PLUGINS_ENABLED", PLUGINS)
    lines = [line for name, command in commands().items() for line in _described(name, command)]
    assert_recorded(".", {"options": "\n".join(lines) + "\n"})


def _described(name: str, command: click.Command) -> Iterator[str]:
    yield name
    for parameter in command.params:
        names = ", ".join((*parameter.opts, *parameter.secondary_opts))
        yield "  " + " ".join(word for word in (names, _type(parameter), *_rules(parameter)) if word)


def _type(parameter: click.Parameter) -> str:
    kind = parameter.type
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return "flag"
    if isinstance(kind, click.Choice):
        return "|".join(map(str, kind.choices))
    if isinstance(kind, click.IntRange | click.FloatRange):
        return f"{kind.name.removesuffix(' range')} {kind._describe_range()}"
    return kind.name


def _rules(parameter: click.Parameter) -> Iterator[str]:
    flag = isinstance(parameter, click.Option) and parameter.is_flag
    default = parameter.to_info_dict().get("default")
    if parameter.required:
        yield "required"
    if parameter.multiple or parameter.nargs != 1:
        yield "repeated"
    if isinstance(parameter, click.Option) and parameter.hidden:
        yield "hidden"
    if isinstance(parameter, click.Option) and parameter.metavar:
        yield f"shown as {parameter.metavar}"
    if parameter.envvar:
        yield f"from {parameter.envvar}"
    if default is not None and not flag and not callable(default):
        yield f"default {default!r}"
