"""`tasker config init`: initial configuration files."""

from __future__ import annotations

from pathlib import Path

import click

from tasker.cli.config.options import FOLDER
from tasker.cli.connection import FORMAT, print_as
from tasker.services.configuration.sources import SOURCE_DIR
from tasker.services.scaffold.starter_configuration import write_configuration
from tasker.settings.substitution import variables_in


@click.command()
@click.option("--source-dir", type=FOLDER, default=SOURCE_DIR, show_default=True, help="Directory for the files.")
@FORMAT
def init(source_dir: Path, form: str) -> None:
    """Write commented configuration files: a base, and the differences of development, test and production.

    Existing files are never overwritten.
    """
    written = [str(file) for file in write_configuration(source_dir)]
    print_as(
        form, {"written": written}, lambda _: "\n".join((*(f"wrote {file}" for file in written), _next(source_dir)))
    )


def _next(source_dir: Path) -> str:
    option = "" if source_dir == SOURCE_DIR else f" --source-dir {source_dir}"
    generated = source_dir / "generated"
    return f"""Next:
  1. Edit {source_dir / "base" / "common.toml"} (database, messaging) and worker.toml beside it (concurrency, lease);
     settings that differ by environment are in {source_dir / "environments"}. To explain one: tasker config explain KEY
  2. Check it:              tasker config validate{option}
  3. Generate the file that a process reads, for each context and environment that you run:
                            tasker config generate --context worker --environment production{option}
                            tasker config generate --context orchestration --environment production{option}
  4. Set for each process:  TASKER_CONFIG_PATH={generated / "worker-production.toml"} (an orchestrator its own)
                            TASKER_ENV=production
                            DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE{_variables(source_dir)}
  5. Create the schema:     tasker db upgrade
  6. Start:                 tasker worker, tasker orchestrator"""


def _variables(source_dir: Path) -> str:
    """Return lines for the other variables that the production files require."""
    texts = [file.read_text("utf-8") for file in (source_dir / "environments" / "production").glob("*.toml")]
    names = {name for text in texts for line in text.splitlines() for name, default in _needed(line) if default is None}
    return "".join(f"\n                            {name}=..." for name in sorted(names - {"DATABASE_URL"}))


def _needed(line: str) -> list[tuple[str, str | None]]:
    return variables_in(line.partition("#")[0])
