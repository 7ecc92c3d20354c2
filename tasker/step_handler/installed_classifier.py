"""The rules by which exceptions of handlers are retried: those of an installed package, else the default ones."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tasker.errors import ConfigurationError, ErrorClassifier, get_classifier
from tasker.installed import offered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tasker.error_classifiers"


def installed_classifier() -> ErrorClassifier:
    """Return the classifier that an installed package offers, else the one with the default rules.

    Raises `ConfigurationError` for two of them, and for one that does not import or is no `ErrorClassifier`.
    """
    points = offered(GROUP)
    return _loaded(points) if points else get_classifier()


@cache
def _loaded(points: tuple[EntryPoint, ...]) -> ErrorClassifier:
    if len(points) > 1:
        names = " and ".join(point.value for point in points)
        raise ConfigurationError(f"two packages offer an error classifier: {names}", hint="uninstall one of them")
    (point,) = points
    try:
        found = point.load()
        classifier = found() if isinstance(found, type) else found
    except Exception as error:
        raise ConfigurationError(f"the error classifier {point.value} cannot be loaded: {error!r}") from error
    if not isinstance(classifier, ErrorClassifier):
        raise ConfigurationError(
            f"expected a subclass of ErrorClassifier, got {point.value}", hint=f"correct the entry point {GROUP}"
        )
    return classifier
