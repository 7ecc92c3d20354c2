"""Write the table of `tasker/db/sql/README.md`: every SQL function with its callers, its tables and its locks.

    python -m tools.sql_readme

Callers and tables are read from the code, locks from the line `-- Locks:` above a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby, zip_longest
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SQL = ROOT / "tasker" / "db" / "sql"
README = SQL / "README.md"
BEGIN, END = "<!-- functions: python -m tools.sql_readme -->\n", "<!-- end of functions -->\n"
HEADINGS, WIDTHS = ("Function", "Called by", "Writes", "Locks, in order"), (33, 25, 21, 18)
PUBLISHED, MOST_NAMED = "users (docs/sql.md)", 3
FUNCTION = re.compile(
    r"(?P<head>(?:^--[^\n]*\n)*)^create or replace (?:function|procedure) tasker\.(?P<name>\w+)"
    r"(?P<body>.*?)(?=^(?:--[^\n]*\n)*create or replace|\Z)",
    re.DOTALL | re.MULTILINE,
)
LOCKS = re.compile(r"^-- Locks: (.+?)\.(?= |\n|$)", re.MULTILINE | re.DOTALL)
WRITES = re.compile(r"\b(?:insert into|delete from|(?<!for )(?<!key )(?<!do )update) tasker\.(\w+)")
CALL = re.compile(r"(?:\bcall|call_typed|\bread|_go_on|_call)\(\s*\"(\w+)\"|(?<![`\w])tasker\.(\w+)|\('(\w+)', ")


class SqlFunction(NamedTuple):
    """A function as its file has it."""

    folder: str
    name: str
    head: str
    body: str

    @property
    def writes(self) -> list[str]:
        """Tables that the function itself writes; those that it calls have rows of their own."""
        return sorted({*WRITES.findall(_code(self.body))})

    @property
    def locks(self) -> str:
        """What it locks, in order: the first sentence after `-- Locks:`."""
        match = LOCKS.search(self.head)
        return re.sub(r"\s*\n--\s*", " ", match[1]) if match else ""


def functions() -> list[SqlFunction]:
    """Return all functions in the order of folders, files and their place in them."""
    return [
        SqlFunction(path.parent.name, match["name"], match["head"], match["body"])
        for path in sorted((SQL / "functions").rglob("*.sql"))
        for match in FUNCTION.finditer(path.read_text("utf-8"))
    ]


def callers(function: SqlFunction, sources: Sequence[tuple[str, Set[str]]]) -> list[str]:
    """Return where the function is called from outside of the functions: modules, queries, a backend."""
    found = list(dict.fromkeys(name for name, called in sources if function.name in called))
    return found or ([PUBLISHED] if function.folder == "published" else [])


def sql_callers(function: SqlFunction, others: Sequence[SqlFunction]) -> list[str]:
    """Return the functions that call it, or their number if there are many."""
    call = re.compile(rf"tasker\.{function.name}\(")
    found = [other.name for other in others if other.name != function.name and call.search(_code(other.body))]
    return found if len(found) <= MOST_NAMED else [f"{len(found)} functions"]


def sources() -> list[tuple[str, Set[str]]]:
    """Return (name, functions that it calls) of everything that may call one."""
    folders = [*(ROOT / "tasker").rglob("*.py"), *(SQL / "queries").glob("*.sql"), *(ROOT / "backends").rglob("*.sql")]
    return [(_name(path), _called(_code(path.read_text("utf-8")))) for path in sorted(folders)]


def _called(text: str) -> Set[str]:
    return {f"{short}_v1" if short else full or quoted for short, full, quoted in CALL.findall(text)}


def table() -> str:
    """Return the table as Markdown: a row for each function that is called from outside, writes or locks."""
    known, every = sources(), functions()
    lines = [_line(HEADINGS), _line(["-" * width for width in WIDTHS])]
    for folder, group in groupby(every, key=lambda function: function.folder):
        lines += _row([f"**{folder}**", "", "", ""])
        quiet = []
        for function in group:
            by = callers(function, known)
            if by or function.writes or function.locks:
                by = by or sql_callers(function, every)
                cells = [function.name, ", ".join(by), ", ".join(function.writes), function.locks]
                lines += _row(cells)
            else:
                quiet.append(function.name)
        lines += _row([", ".join(quiet), "", "", ""]) if quiet else []
    return "\n".join(lines) + "\n"


def text() -> str:
    """Return the README with the table of today."""
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def _name(path: Path) -> str:
    if path.suffix == ".py":
        module = path.relative_to(ROOT / "tasker").with_suffix("").parts
        return name if len(name := ".".join(module[-2:])) <= WIDTHS[1] else module[-1]
    return path.relative_to(SQL).as_posix() if SQL in path.parents else path.relative_to(ROOT / "backends").parts[0]


def _code(text: str) -> str:
    """Return SQL without its comments; other text is unchanged where it has none."""
    return re.sub(r"--[^\n]*", "", text)


def _row(cells: Sequence[str]) -> Iterator[str]:
    wrapped = [wrap(cell, width, break_long_words=False) for cell, width in zip(cells, WIDTHS, strict=True)]
    return (_line(parts) for parts in zip_longest(*wrapped, fillvalue=""))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))} |"


if __name__ == "__main__":
    README.write_text(text(), encoding="utf-8")
