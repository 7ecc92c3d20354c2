"""Built-in steps that reach outside of Tasker: commands, SQL, files, notifications, language models.

Each module is a plugin of its own, with a handler and a kind of resource: `command`, `sql`, `files`, `notify`, `llm`.
"""
