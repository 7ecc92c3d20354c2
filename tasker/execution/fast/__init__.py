"""Ways around work that most tasks do not need; each names the benchmark row that pays for it."""
