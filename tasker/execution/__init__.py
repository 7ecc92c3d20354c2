"""The worker's runtime: claims steps, runs them, brings results, keeps its lease. Never imports orchestration."""
