"""Fast paths for common cases; the docstring of each names the benchmark that justifies it."""
