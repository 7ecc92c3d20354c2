"""Files of a new configuration (`tasker config init`), from `configuration/`, stored there as NAME.toml.txt."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

from tasker.errors import UsageError
from tasker.settings.addresses import DEFAULT_BACKEND

FILES = Path(__file__).parent / "configuration"


def write_configuration(folder: Path) -> list[Path]:
    """Write `base` and `environments` into the folder and return the files.

    Raises `UsageError` if one of them exists or cannot be written; then all created files are removed. Existing files
    are never overwritten.
    """
    sources = sorted(FILES.rglob("*.toml.txt"))
    targets = [folder / source.relative_to(FILES).with_suffix("") for source in sources]
    if existing := [target for target in targets if target.exists()]:
        raise UsageError(
            f"a configuration already exists: {existing[0]}; nothing was written",
            hint="edit its files, or choose another folder: tasker config init --source-dir FOLDER",
        )
    with ExitStack() as made:
        for source, target in zip(sources, targets, strict=True):
            try:
                _write(target, _text(source), made)
            except OSError as error:
                raise UsageError(f"{error.filename or target} cannot be written: {error.strerror}") from None
        made.pop_all()
    return targets


def _text(source: Path) -> str:
    return source.read_text(encoding="utf-8").replace("@DEFAULT_BACKEND@", DEFAULT_BACKEND)


def _write(target: Path, text: str, made: ExitStack) -> None:
    """Write one file; `made` removes it, and each folder created for it, if a later file fails."""
    for folder in reversed([parent for parent in target.parents if not parent.exists()]):
        folder.mkdir()
        made.callback(_remove, folder)
    with target.open("x", encoding="utf-8") as file:
        made.callback(_remove, target)
        file.write(text)


def _remove(path: Path) -> None:
    with suppress(OSError):  # such as a folder in which another process has begun to write
        path.rmdir() if path.is_dir() else path.unlink()
