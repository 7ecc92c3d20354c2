"""Fakes of resources for tests, which record what handlers do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class ResourceCall:
    """Call of a method of a fake: `name` is that of the resource."""

    name: str
    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        shown = [f"{value!r:.80}" for value in self.arguments]
        shown += [f"{key}={value!r:.80}" for key, value in self.options.items()]
        return f"{self.name}.{self.method}({', '.join(shown)})"


class ResourceFakes(MutableMapping[str, Any]):
    """Fakes by the names of resources: `fakes["bank"] = FakeBank()`.

    Handlers get an object that passes each call on to the fake and records it in `calls`. A handler that asks for a
    resource without a fake fails as on a worker without that resource.
    """

    def __init__(self) -> None:
        self._fakes: dict[str, Any] = {}
        self.calls: list[ResourceCall] = []

    def http(self, name: str, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        """Add a resource of the kind `http`, for `tasker.http` and handlers, whose requests `answer` answers."""
        from tasker.testing.contexts import fake_http

        def recorded(request: httpx.Request) -> httpx.Response:
            self.calls.append(ResourceCall(name, request.method, (str(request.url),), {}))
            return answer(request)

        self._fakes[name] = fake_http(recorded)

    def calls_of(self, name: str) -> list[ResourceCall]:
        """Return the calls of one resource, in order."""
        return [call for call in self.calls if call.name == name]

    def __getitem__(self, name: str) -> Any:
        return self._fakes[name]

    def __setitem__(self, name: str, fake: Any) -> None:
        self._fakes[name] = _Recorded(name, fake, self.calls)

    def __delitem__(self, name: str) -> None:
        del self._fakes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fakes)

    def __len__(self) -> int:
        return len(self._fakes)

    def are_made(self, names: frozenset[str]) -> bool:
        """Return True: a fake exists from the start."""
        return True

    def renew(self) -> list[str]:
        """Return the names of the resources whose secrets have changed: none."""
        return []


class _Recorded:
    """A fake whose calls are recorded."""

    def __init__(self, name: str, fake: Any, calls: list[ResourceCall]) -> None:
        self._name, self._fake, self._calls = name, fake, calls

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._fake, attribute)
        if not callable(value):
            return value

        def recorded(*arguments: Any, **options: Any) -> Any:
            self._calls.append(ResourceCall(self._name, attribute, arguments, options))
            return value(*arguments, **options)

        return recorded

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._calls.append(ResourceCall(self._name, "__call__", arguments, options))
        return self._fake(*arguments, **options)
