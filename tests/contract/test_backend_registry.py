from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tasker.errors import BackendUnavailable
from tasker.messaging import installed_backends, load_backend
from tasker_memory import MemoryBackend
from tests.support.strangers import install_backend

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with one backend module on the path, as an installer would."""

    def make(distribution: str, name: str, module: str, source: str) -> None:
        install_backend(tmp_path, monkeypatch, distribution, name, module, source)

    return make


def test_the_shipped_backends_are_installed_and_chosen_by_name() -> None:
    assert set(installed_backends()) >= {"memory", "pgmq"}
    assert isinstance(load_backend("memory", {}), MemoryBackend)
    assert load_backend("pgmq", {}).provider_name() == "pgmq"


def test_settings_reach_the_backend(install: Install) -> None:
    source = "import tasker_memory\ncreate = lambda settings: tasker_memory.create({'max_depth': settings['depth']})"
    install("settings_dist", "sized", "sized_backend", source)
    assert isinstance(load_backend("sized", {"depth": 1}), MemoryBackend)


def test_a_strangers_backend_has_the_same_rights(install: Install) -> None:
    install("stranger", "strange", "strange_backend", "from tasker_memory import create")
    assert "strange" in installed_backends()
    assert isinstance(load_backend("strange", {}), MemoryBackend)


def test_an_unknown_name_lists_the_installed_ones() -> None:
    with pytest.raises(
        BackendUnavailable, match=r"no messaging backend 'kafka'; installed: .*memory.*, pgmq"
    ) as caught:
        load_backend("kafka", {})
    assert caught.value.retryable is False


def test_a_missing_extra_names_the_pip_command(install: Install) -> None:
    install("tasker_amqp", "amqp", "amqp_backend", "import a_driver_that_is_not_here")
    with pytest.raises(BackendUnavailable, match="needs 'a_driver_that_is_not_here'") as caught:
        load_backend("amqp", {})
    assert caught.value.hint == "pip install 'tasker_amqp[amqp]'"


def test_a_module_without_create_is_refused(install: Install) -> None:
    install("empty_dist", "hollow", "hollow_backend", "")
    with pytest.raises(BackendUnavailable, match=r"hollow_backend has no create\(settings\)"):
        load_backend("hollow", {})


def test_a_backend_that_lacks_methods_is_refused_with_their_names(install: Install) -> None:
    source = (
        "import tasker_memory\n"
        "class Half:\n    def __getattr__(self, name):\n"
        "        if name in ('ack_message', 'capabilities'): raise AttributeError(name)\n"
        "        return lambda *a: None\n"
        "create = lambda settings: Half()"
    )
    install("half_dist", "half", "half_backend", source)
    with pytest.raises(BackendUnavailable, match="it lacks: ack_message, capabilities") as error:
        load_backend("half", {})
    assert not error.value.retryable


def test_a_name_offered_twice_is_refused_with_both_places(install: Install) -> None:
    install("one_dist", "twice", "one_backend", "from tasker_memory import create")
    install("two_dist", "twice", "two_backend", "from tasker_memory import create")
    with pytest.raises(
        BackendUnavailable, match=r"more than once: one_backend \(of one_dist\), two_backend \(of two_dist\)"
    ):
        load_backend("twice", {})


def test_a_backend_that_two_distributions_offer_from_one_module_is_that_module(install: Install) -> None:
    install("old_name", "renamed", "renamed_backend", "from tasker_memory import create")
    install("new_name", "renamed", "renamed_backend", "from tasker_memory import create")
    assert isinstance(load_backend("renamed", {}), MemoryBackend)
    assert installed_backends().count("renamed") == 1
