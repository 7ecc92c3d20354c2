"""Tasker inside a program: `App`, and `SyncApp` for programs that are not asynchronous."""
