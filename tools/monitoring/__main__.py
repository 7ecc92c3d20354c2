"""Writes what is made from the tables of metrics and alerts: the reference, the rules of Prometheus, the dashboard.

python -m tools.monitoring
"""

from tools.monitoring import FILES, ROOT

for path, made in FILES.items():
    (ROOT / path).write_text(made(), "utf-8")
