"""Tables of cases as one test: a thousand trivial cases take longer to collect and to report than to check."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any


def for_each(cases: Collection[Any]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """Make one test of a check of a case: it checks all of them, and fails with each case that failed."""

    def decorate(check: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            assert cases, "there are no cases"
            failures: list[Exception] = []
            for case in cases:
                try:
                    check(case)
                except Exception as failure:
                    failure.add_note(f"case: {case!r}")
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{check.__name__} failed", failures)

        test.__doc__, test.__module__ = check.__doc__, check.__module__
        return test

    return decorate
