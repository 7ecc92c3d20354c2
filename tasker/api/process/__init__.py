"""HTTP port of a single worker or orchestrator: its health, its metrics and the templates and handlers that it
serves."""
