"""API keys are known by their digest, and permit what the configuration says."""

from __future__ import annotations

import pytest

from tasker.app.http_serving import auth_shown
from tasker.errors import NotAuthenticated, UsageError
from tasker.operations.permissions import Grant, Permission
from tasker.server.auth.authenticator import Authenticator, KeyRing, digest, new_key
from tasker.settings.http import ApiKeyEntry, Auth

KEY, OTHER = "a-key-of-a-program", "another-key-of-a-program"


def test_a_key_is_known_by_itself_and_by_its_digest() -> None:
    ring = KeyRing(
        [
            ApiKeyEntry(key=digest(KEY), permissions=("tasks:read",), name="ci", namespaces=("shop",)),
            ApiKeyEntry(key=OTHER, permissions=(), name=""),
        ]
    )

    found = ring.caller(KEY)
    assert (found.name, found.method, found.confined_to) == ("ci", "api_key", {"shop"})
    assert ring.caller(OTHER).name == f"key {digest(OTHER)[7:15]}"
    assert not any(ring.caller(OTHER).may(permission) for permission in Permission)
    for wrong in (digest(KEY), KEY[:-1], KEY + "x", ""):
        with pytest.raises(NotAuthenticated, match="unknown API key"):
            ring.caller(wrong)


def test_nothing_of_a_key_is_kept_but_its_digest() -> None:
    assert KEY not in repr(vars(KeyRing([ApiKeyEntry(key=KEY, permissions=("*",))])))
    assert new_key() != new_key()


def test_a_permission_that_does_not_exist_is_a_mistake_that_names_it() -> None:
    with pytest.raises(UsageError, match="'ci' has permissions that do not exist: tasks:fly"):
        KeyRing([ApiKeyEntry(key=KEY, permissions=("tasks:read", "tasks:fly"), name="ci")])


async def test_the_registry_counts_only_where_it_is_turned_on_and_one_key_may_stand_alone() -> None:
    registry = (ApiKeyEntry(key=OTHER, permissions=("tasks:*",), name="ci"),)
    single = Authenticator(Auth(enabled=True, api_key=KEY, api_keys=registry))
    assert (await single.caller(None, KEY)).grants == {Grant("*")}
    with pytest.raises(NotAuthenticated):
        await single.caller(None, OTHER)
    both = Authenticator(Auth(enabled=True, api_key=KEY, api_keys=registry, api_keys_enabled=True))
    assert (await both.caller(None, OTHER)).name == "ci"
    for authorization in ("Bearer x.y.z", "Basic eDp5", "Bearer", "Bearer "):
        with pytest.raises(NotAuthenticated):
            await both.caller(authorization, KEY)
    with pytest.raises(NotAuthenticated, match="Missing authentication credentials"):
        await both.caller(None, None)


async def test_hint_names_what_the_server_takes_and_the_count_what_it_knows() -> None:
    registry = (
        ApiKeyEntry(key=OTHER, permissions=("tasks:*",), name="ci"),
        ApiKeyEntry(key="third", permissions=("tasks:*",), name="cd"),
    )
    settings = Auth(enabled=True, api_key=KEY, api_key_header="X-Ours", api_keys=registry)
    counts = {
        settings: ("1 API key", 1),
        settings.replace(api_keys_enabled=True): ("3 API keys", 3),
        settings.replace(api_keys_enabled=True, api_key=""): ("2 API keys", 2),
    }
    for given, (methods, count) in counts.items():
        assert Authenticator(given).methods == methods
        assert auth_shown(given)["api_key_count"] == count
    assert auth_shown(settings.replace(enabled=False))["api_key_count"] == 0
    for authorization, reason, hint in (
        ("Bearer x.y.z", "not_taken", "send X-Ours"),
        (None, "missing", "send Authorization: Bearer TOKEN, or X-Ours: KEY"),
    ):
        with pytest.raises(NotAuthenticated) as refused:
            await Authenticator(settings).caller(authorization, None)
        assert (refused.value.reason, refused.value.hint) == (reason, hint)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tasks",
        "tasks:",
        ":read",
        "tasks:fly",
        "coffee:*",
        "*:*",
        "tasks:read:",
        "tasks:read:a b",
        "tasks:read:a:b",
        "**",
    ],
)
def test_what_is_no_word_of_the_vocabulary_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Grant.of(text)


def test_a_wildcard_covers_its_resource_and_no_other() -> None:
    assert [p for p in Permission if Grant.of("dlq:*").covers(p)] == ["dlq:read", "dlq:update", "dlq:stats"]
    assert all(Grant.of("*").covers(permission) for permission in Permission)
    assert Grant.of("tasks:*:shop") == Grant("tasks:*", "shop")
