"""`tasker plan` and `tasker apply`: register the templates of folders together, after a look at what that changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tasker.cli.commands.plugin import plugged_rules
from tasker.cli.connection import FORMAT, format_option, plain, print_as
from tasker.cli.main import CommandFailure
from tasker.cli.render.deployment import deployment_annotations, deployment_text
from tasker.cli.suggestions import WorkflowPath
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.errors import RegistryChanged, TaskerError, TemplateError, UsageError
from tasker.services.workflows.files import load_workflows
from tasker.services.workflows.joined_texts import JoinedTexts, join_files
from tasker.services.workflows.texts import FILE
from tasker.views.deployments import Deployment

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet

NOTHING, FAILED, CHANGES = 0, 1, 2
FORM = 1
"""Version of the form of plan files."""


class Planned(NamedTuple):
    """Content of a plan file."""

    texts: JoinedTexts
    environment: str | None
    force: bool
    token: str


class FailsWithOne(click.Command):
    """Command whose exit code for every mistake is 1, because 2 means that there are changes."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the command line."""
        with _failing_with_one():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _failing_with_one():
            return super().invoke(ctx)


@contextmanager
def _failing_with_one() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.exit_code = FAILED  # type: ignore[misc]  # click: a default, meant to be set
        raise


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    env = click.option("--env", "environment", metavar="NAME", help="Apply the overrides of this environment.")
    force = click.option(
        "--force", is_flag=True, help="Replace a version that has different content; running tasks keep the old one."
    )
    return env(force(command))


@click.command(cls=FailsWithOne)
@click.argument("paths", metavar="PATH...", type=WorkflowPath(), nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the plan to a file."
)
@_options
@format_option("text", "json", "github")
@fleet_options
def plan(
    paths: tuple[Path, ...], output: Path | None, environment: str | None, force: bool, form: str, place: FleetTarget
) -> None:
    """Show what registering the templates of files and folders would change; register nothing.

    It compares them with the registered templates, counts the open tasks of each version with the steps that they have
    still to run, and names steps that no live worker could run. Exit code 0: there is nothing to register; 2: there
    is; 1: an error, or a version that would be refused.

    \b
    Examples:
      tasker plan workflows
      tasker plan workflows -o plan.json && tasker apply plan.json
      tasker plan workflows --format github
    """
    texts = _texts(paths, environment)
    try:
        with _located(texts):
            deployment = run_on_fleet(place, lambda fleet: fleet.deployments.plan(texts.text, environment, force=force))
    except TaskerError as error:
        raise _failure(error) from error
    if output is not None:
        _write(output, Planned(texts, environment, force, deployment.token), deployment)
    _show(deployment, texts, form)
    if any(template.action == "refused" for template in deployment.templates):
        raise click.exceptions.Exit(FAILED)
    raise click.exceptions.Exit(CHANGES if deployment.has_changes else NOTHING)


@click.command()
@click.argument("targets", metavar="PLAN|PATH...", type=WorkflowPath(), nargs=-1, required=True)
@_options
@FORMAT
@fleet_options
def apply(targets: tuple[Path, ...], environment: str | None, force: bool, form: str, place: FleetTarget) -> None:
    """Register the templates of a plan, or of files and folders, in one transaction: all or none.

    PLAN is a file of `tasker plan -o`. It is refused if another version of one of its templates was registered since.
    A plan that was applied already changes nothing.

    \b
    Examples:
      tasker apply plan.json
      tasker apply workflows
    """
    planned = _read(targets, environment, force)
    texts = _texts(targets, environment) if planned is None else planned.texts
    options: dict[str, Any] = {
        "environment": environment if planned is None else planned.environment,
        "force": force if planned is None else planned.force,
    }

    async def register(fleet: Fleet) -> list[dict[str, str]]:
        deployment = await fleet.deployments.plan(texts.text, **options)
        if not deployment.has_changes:
            return []
        token = deployment.token if planned is None else planned.token
        done = await fleet.deployments.apply(texts.text, token, **options)
        changed = {(t.namespace, t.name, t.version) for t in deployment.templates if t.action != "unchanged"}
        return [
            {"namespace": t.namespace, "name": t.name, "version": t.version}
            for t in done.templates
            if (t.namespace, t.name, t.version) in changed
        ]

    with _located(texts):
        done = run_on_fleet(place, register, operates=True)
    print_as(form, {"registered": done}, _registered)


def _registered(done: dict[str, Sequence[dict[str, str]]]) -> str:
    if not done["registered"]:
        return "nothing to register"
    return "\n".join("registered {namespace}/{name}:{version}".format(**entry) for entry in done["registered"])


def _texts(paths: Sequence[Path], environment: str | None) -> JoinedTexts:
    """Return the files as one text, after their problems have been reported with the names of the files."""
    rules = plugged_rules()
    try:
        for path in paths:
            load_workflows(path, environment, rules, named=True)
        return join_files(paths)
    except TaskerError as error:
        raise _failure(error) from error


@contextmanager
def _located(texts: JoinedTexts) -> Iterator[None]:
    """Name the files of the problems that the joined text has, such as a template that two files hold."""
    try:
        yield
    except TemplateError as error:
        file = re.compile(rf"^{FILE}:(\d+):", re.MULTILINE)
        message = file.sub(lambda match: "{}:{}:".format(*texts.place(int(match[1]))), error.message)
        raise TemplateError(message, hint=error.hint) from error


def _failure(error: TaskerError) -> CommandFailure:
    failure = CommandFailure(error)
    failure.exit_code = FAILED  # type: ignore[misc]  # click: a default, meant to be set
    return failure


def _show(deployment: Deployment, texts: JoinedTexts, form: str) -> None:
    if form == "github":
        if lines := deployment_annotations(deployment, texts):
            click.echo(lines)
    elif form == "json":
        places = {"files": list(texts.files), "starts": list(texts.starts)}
        print_as(form, {**asdict(deployment), **places}, str)
    else:
        click.echo(deployment_text(deployment, texts))


def _write(file: Path, planned: Planned, deployment: Deployment) -> None:
    data = {
        "form": FORM,
        "token": planned.token,
        "environment": planned.environment,
        "force": planned.force,
        **planned.texts.to_dict(),
        "deployment": asdict(deployment),
    }
    file.write_text(json.dumps(data, default=plain, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _read(targets: Sequence[Path], environment: str | None, force: bool) -> Planned | None:
    """Return the content of a plan file, or None if the targets are templates. Raises `UsageError`."""
    if len(targets) != 1 or targets[0].suffix != ".json":
        return None
    if environment is not None or force:
        raise UsageError("a plan has its options already", hint="give --env and --force to `tasker plan`")
    try:
        data = json.loads(targets[0].read_text(encoding="utf-8"))
        if data["form"] != FORM:
            raise RegistryChanged(f"{targets[0]} was written by another release", hint="make the plan again")
        return Planned(JoinedTexts.from_dict(data), data["environment"], bool(data["force"]), str(data["token"]))
    except (ValueError, KeyError, TypeError) as error:
        hint = "expected a file that `tasker plan -o FILE` wrote"
        raise UsageError(f"{targets[0]} is not a plan", hint=hint) from error
