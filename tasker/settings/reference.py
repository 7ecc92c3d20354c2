"""Generator of the Markdown reference of all parameters, from the model that checks them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tasker.settings.catalogue import Parameter, is_live, parameters, tables
from tasker.settings.refused_keys import REFUSED
from tasker.settings.toml_text import toml_value

_HEAD = """# Configuration reference

Made by `tasker config docs`; do not edit. How configuration works: [configuration](../configuration.md).

A default in parentheses applies to `tasker run`, `tasker dev` and `App`.
A variable applies only if no file sets the value; `DATABASE_URL` overrides every file.
*Live* settings are reloaded by running processes at SIGHUP, the others at the next start.
*Reserved* marks settings of a part that this version does not have: setting one is an error.
"""


def reference() -> str:
    """Return the complete document."""
    return "".join([_HEAD, *_tables(), *_refused(), f"\n{_coverage()}\n"])


def _tables() -> Iterator[str]:
    meanings = tables()
    for table, group in groupby(parameters(), key=lambda parameter: parameter.path.rpartition(".")[0]):
        yield f"\n## {table}\n\n{meanings[table]}\n\n"
        yield "| parameter | type, range | default | meaning |\n|---|---|---|---|\n"
        yield from map(_row, group)


def _row(parameter: Parameter) -> str:
    cells = (f"`{parameter.name}`", _cell(_type(parameter)), _default(parameter), _cell(_meaning(parameter)))
    return f"| {' | '.join(cells)} |\n"


def _type(parameter: Parameter) -> str:
    if parameter.choices:
        return " or ".join(f"`{choice}`" for choice in parameter.choices)
    return f"{parameter.kind}, {parameter.range}" if parameter.low is not None else parameter.kind


def _default(parameter: Parameter) -> str:
    other = "" if parameter.single_process is None else f" (`{toml_value(parameter.single_process)}`)"
    return f"`{toml_value(parameter.default)}`{other}"


def _meaning(parameter: Parameter) -> str:
    parts = [parameter.meaning, parameter.advice or ""]
    if parameter.variables:
        parts.append(f"Variable: {', '.join(f'`{name}`' for name in parameter.variables)}.")
    if is_live(parameter.path) and not parameter.reserved:
        parts.append("*Live.*")
    if parameter.reserved:
        parts.append(f"*Reserved for {parameter.reserved}.*")
    return " ".join(part for part in parts if part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _refused() -> Iterator[str]:
    yield "\n## Refused\n\nKeys of similar systems that Tasker rejects, with everything below them.\n\n"
    yield "| key | why |\n|---|---|\n"
    for path, reason in sorted(REFUSED.items()):
        yield f"| `{path}` | {_cell(reason)} |\n"


def _coverage() -> str:
    every = parameters()
    documented = sum(bool(parameter.meaning) for parameter in every)
    return f"{documented}/{len(every)} documented ({documented * 100 // len(every)}%)"
