"""What moves tasks on: results, expansion, promotion of retries, sweeps. Never imports the worker's runtime."""
