"""A report of a day. Its numbers follow from the date alone, so that a second run of it comes to the same."""

from __future__ import annotations

from datetime import date

from tasker.step_handler import depends_on, inputs, step_handler


@step_handler("reports.count_orders")
@inputs("day")
def count_orders(day: str) -> dict[str, int]:
    number = date.fromisoformat(day).toordinal()
    return {"orders": 100 + number % 50, "returns": number % 7}


@step_handler("reports.write_report")
@inputs("day", "kind", "since")
@depends_on(counted="count_orders")
def write_report(
    day: str, counted: dict[str, int], kind: str = "full", since: str | None = None
) -> dict[str, str | int]:
    lines = [f"{counted['orders']} orders on {day}", f"{counted['returns']} returns"]
    lines += [f"since {since}"] if since else []
    return {"file": f"reports/{day}.txt", "text": "\n".join(lines if kind == "full" else lines[:1])}
