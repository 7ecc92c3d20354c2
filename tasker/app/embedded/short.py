"""The apps of commands that do one thing and end."""

from __future__ import annotations

from tasker.app.embedded.app import App
from tasker.app.embedded.started import lazy_value
from tasker.step_handler.installed_classifier import installed_classifier


class CommandApp(App):
    """Loads handlers, and what reads templates, when they are first asked for: most commands never ask.

    They are a quarter of what such a command takes.
    """

    registry = lazy_value(App._loaded)
    _targets = lazy_value(App._targeted)

    def _load(self) -> None:
        pass


class OneTaskApp(App):
    """Works on one task: handlers of installed packages are imported when it needs them, not to list them."""

    def _load_installed(self) -> None:
        installed_classifier()  # a classifier that cannot be used is said now
