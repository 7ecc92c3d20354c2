"""Runtime behind the published modules: start and stop of a worker, its events, its observation, calls of clients."""
