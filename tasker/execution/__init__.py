"""The worker's runtime: claims steps, runs them, reports results, renews its lease. Never imports orchestration."""
