"""Classifier that decides which exceptions of handlers are retried: that of an installed package, else the default."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tasker.errors import ConfigurationError, ErrorClassifier, get_classifier
from tasker.installed import offered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tasker.error_classifiers"


def installed_classifier() -> ErrorClassifier:
    """Return the classifier of an installed package, else the one with the default rules.

    Raises `ConfigurationError` if there are two, or if one fails to import or is not an `ErrorClassifier`.
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
        loaded = point.load()
        classifier = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise ConfigurationError(f"the error classifier {point.value} cannot be loaded: {error!r}") from error
    if not isinstance(classifier, ErrorClassifier):
        raise ConfigurationError(
            f"expected a subclass of ErrorClassifier, got {point.value}", hint=f"correct the entry point {GROUP}"
        )
    return classifier
