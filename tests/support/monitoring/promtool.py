"""Prometheus itself as a judge of the small evaluator beside this, where its `promtool` is installed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.monitoring.promql import NAME, Labels, Scrapes


def differences(asked: Iterable[tuple[Scrapes, str]], folder: Path) -> str:
    """Where Prometheus answers with another number of series at the last scrape; nothing where it agrees."""
    file = folder / "asked.json"
    file.write_text(json.dumps({"tests": [_test(*each) for each in asked]}), "utf-8")
    run = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
    return "" if run.returncode == 0 else run.stdout + run.stderr


def _test(scrapes: Scrapes, expression: str) -> dict[str, Any]:
    """The scrapes are evenly apart."""
    (first, _), *_, (last, _) = scrapes.at
    answer = scrapes.ask(expression)
    assert isinstance(answer, dict)
    question = {
        "expr": f"count({expression}) or vector(0)",
        "eval_time": f"{int(last)}s",
        "exp_samples": [{"labels": "{}", "value": len(answer)}],
    }
    keys = sorted({key for _, found in scrapes.at for key in found}, key=sorted)
    series = [
        {"series": _written(key), "values": " ".join(str(found.get(key, "_")) for _, found in scrapes.at)}
        for key in keys
    ]
    step = int(last - first) // (len(scrapes.at) - 1)
    return {"interval": f"{step}s", "input_series": series, "promql_expr_test": [question]}


def _written(key: Labels) -> str:
    labels = dict(key)
    name = labels.pop(NAME)
    return f"{name}{{{','.join(f'{label}={json.dumps(value)}' for label, value in sorted(labels.items()))}}}"
