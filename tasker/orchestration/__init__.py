"""The components that advance tasks: results, expansion, retries, sweeps. Never imports the worker's runtime."""
