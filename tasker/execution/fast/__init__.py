"""Ways around work that most tasks do not need; each says which row of the benchmarks pays for it."""
