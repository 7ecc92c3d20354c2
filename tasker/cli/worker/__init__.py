"""Commands that start long-running processes: `tasker worker`, `tasker orchestrator`, `tasker dev`."""
