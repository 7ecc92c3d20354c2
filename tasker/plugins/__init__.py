"""The hooks, their arguments, and how installed plugins are loaded, isolated and notified."""
