"""Registration of compiled templates, with the places of what the database refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tasker.engine.plans import PlanStore, limit_hint
from tasker.errors import TemplateError, UnknownLimit
from tasker.services.workflows.handlers import Workflow
from tasker.template.diagnostics import Diagnostic, severity_of
from tasker.template.plan import Plan
from tasker.template.report import render_text

if TYPE_CHECKING:
    from tasker.template.compile import Origins


async def register_workflow(plans: PlanStore, workflow: Workflow, *, force: bool = False) -> Plan:
    """Register the template of a file and return its plan. Raises `TemplateError`."""
    with unknown_limits_located(workflow.origins):
        await plans.register(workflow.plan, force=force)
    return workflow.plan


@contextmanager
def unknown_limits_located(origins: Origins, texts: Mapping[str, str] | None = None) -> Iterator[None]:
    """Show where the steps of a template name unknown limits. Without `texts`, the files are read again."""
    try:
        yield
    except UnknownLimit as error:
        code, known = "T126", error.known
        found = [
            Diagnostic(
                code,
                severity_of(code),
                f"no configuration declares the limit `{name}` of step `{step}`",
                origin.file,
                *position,
                hint=limit_hint(name, known),
            )
            for step, origin in origins.items()
            for name, position in origin.limits
            if name in error.limits
        ]
        if not found:
            raise
        texts = _texts(origins) if texts is None else texts
        raise TemplateError(render_text(found, texts), diagnostics=found) from None


def _texts(origins: Origins) -> dict[str, str]:
    texts: dict[str, str] = {}
    for file in {origin.file for origin in origins.values()}:
        with suppress(OSError, UnicodeDecodeError):
            texts[file] = Path(file).read_text(encoding="utf-8-sig")
    return texts
