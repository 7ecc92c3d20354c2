"""Classification of exceptions as retryable or permanent, by the rules of tasker_core."""

from __future__ import annotations

import builtins

from tasker.errors import handler as engine
from tasker_core import errors

__all__ = ["ErrorClassifier", "get_classifier", "is_permanent", "is_retryable"]


class ErrorClassifier(engine.ErrorClassifier):
    """Classifier by an exception's own `retryable`, then the two lists, then the default.

    Programming errors (`TypeError`, `KeyError`, ...) are permanent here. These rules are for applications that call
    them; the engine treats a handler's exception by its own rules.
    """

    PERMANENT_ERROR_CLASSES = (
        errors.PermanentError,
        errors.ValidationError,
        errors.NotFoundError,
        errors.AuthenticationError,
        errors.AuthorizationError,
        errors.ConfigurationError,
        errors.BusinessLogicError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        IndexError,
        AssertionError,
        SyntaxError,
        NameError,
        ImportError,
        NotImplementedError,
    )
    RETRYABLE_ERROR_CLASSES = (
        errors.RetryableError,
        errors.TimeoutError,
        errors.NetworkError,
        errors.RateLimitError,
        errors.ServiceUnavailableError,
        errors.ResourceContentionError,
        ConnectionError,
        ConnectionRefusedError,
        ConnectionResetError,
        ConnectionAbortedError,
        BrokenPipeError,
        builtins.TimeoutError,
        BlockingIOError,
        InterruptedError,
        OSError,
        OSError,
    )

    def retryable(self, exception: BaseException) -> bool:
        """Return True if another attempt may succeed."""
        return self._judged(exception)[0]

    def classify(self, exception: BaseException) -> dict[str, bool | str]:
        """Return the class's name, whether it is retryable, and the rule that applied."""
        retryable, rule = self._judged(exception)
        return {"error_type": type(exception).__name__, "retryable": retryable, "classification": rule}

    def _judged(self, exception: BaseException) -> tuple[bool, str]:
        retryable = getattr(exception, "retryable", None)
        if retryable is not None:
            return bool(retryable), "explicit_attribute"
        if isinstance(exception, self.PERMANENT_ERROR_CLASSES):
            return False, "permanent_class"
        if isinstance(exception, self.RETRYABLE_ERROR_CLASSES):
            return True, "retryable_class"
        return self.default_retryable, "default"


_default = ErrorClassifier()

is_retryable = _default.retryable
is_permanent = _default.permanent


def get_classifier() -> ErrorClassifier:
    """Return the classifier with the default rules."""
    return _default
