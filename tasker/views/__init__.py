"""Tasks, steps, dead letters and events as services read them: frozen values without behaviour."""
