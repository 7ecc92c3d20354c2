"""Apps of commands that do one thing and end."""

from __future__ import annotations

from tasker.app import App
from tasker.app.started import lazy_value
from tasker.handlers.classifier import installed_classifier


class CommandApp(App):
    """App that loads handlers and the template reader lazily, since most commands do not need them.

    Loading them would take a quarter of the time of such a command.
    """

    registry = lazy_value(App._loaded)
    _targets = lazy_value(App._targeted)

    def _load(self) -> None:
        pass


class OneTaskApp(App):
    """App that works on one task: it imports handlers of installed packages when needed, not to list them."""

    def _load_installed(self) -> None:
        installed_classifier()  # reports an unusable classifier at start
