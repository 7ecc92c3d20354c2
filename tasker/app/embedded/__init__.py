"""Tasker inside a program: `App`, and `SyncApp` for synchronous programs."""
