"""Rows of a file, imported for a tenant."""

from __future__ import annotations

from tasker.step_handler import depends_on, inputs, step_handler

Rows = dict[str, list[str]]


@step_handler("tenant_import.read_rows")
@inputs("file", "rows")
def read_rows(file: str, rows: int) -> Rows:
    return {"rows": [f"{file}:{number}" for number in range(rows)]}


@step_handler("tenant_import.store_rows")
@depends_on(read="read_rows")
def store_rows(read: Rows) -> dict[str, int]:
    return {"stored": len(read["rows"])}


@step_handler("tenant_import.report")
@inputs("tenant", "file")
@depends_on(store="store_rows")
def report(tenant: str, file: str, store: dict[str, int]) -> dict[str, str]:
    return {"message": f"{store['stored']} rows of {file} are stored for {tenant}"}
