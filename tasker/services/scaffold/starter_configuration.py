"""The files of a new configuration (`tasker config init`). They lie in `configuration/`, as NAME.toml.txt."""

from __future__ import annotations

from pathlib import Path

from tasker.errors import UsageError

FILES = Path(__file__).parent / "configuration"


def write_configuration(folder: Path) -> list[Path]:
    """Write `base` and `environments` into the folder; the files.

    Raises `UsageError` when one of them exists, or a folder cannot be made; nothing is ever overwritten.
    """
    sources = sorted(FILES.rglob("*.toml.txt"))
    targets = [folder / source.relative_to(FILES).with_suffix("") for source in sources]
    if existing := [target for target in targets if target.exists()]:
        raise UsageError(
            f"there is a configuration already, with {existing[0]}; nothing was written",
            hint="edit its files, or name another folder: tasker config init --source-dir FOLDER",
        )
    try:
        for source, target in zip(sources, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be written: {error.strerror}") from None
    return targets
