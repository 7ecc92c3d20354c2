"""`tasker completion`: completion scripts for shells."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_TASKER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    Bash, in ~/.bashrc: eval "$(tasker completion bash)"; zsh, in ~/.zshrc: eval "$(tasker completion zsh)"; fish:
    tasker completion fish > ~/.config/fish/completions/tasker.fish
    """
    found = get_completion_class(shell)
    assert found is not None  # click supports all three shells
    click.echo(found(ctx.find_root().command, {}, "tasker", VARIABLE).source())
