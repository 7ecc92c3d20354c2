"""The engine as Python sees it: one call per SQL function, the state tables, and pure decisions.

`calls.py` runs the functions of `db/sql/functions`, `answers.py` and `exchange.py` parse what they answer. `states` and
`expansion`, `retry.py` and `identity.py` decide without IO. Use cases belong to `services`.
"""
