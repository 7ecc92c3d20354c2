"""What a submission names: a path that is not there is never taken for the name of a template."""

from __future__ import annotations

import pytest

from tasker.errors import UsageError
from tasker.services.workflows.targets import registered_name


@pytest.mark.parametrize("target", ["./nowhere", "../nowhere", "~/flow", "/flow", "shop/", "shop", "a/b/c", "a/b.yaml"])
def test_a_path_that_is_not_there_is_no_name(target: str) -> None:
    with pytest.raises(UsageError, match="does not exist") as error:
        registered_name(target)
    assert "namespace/name[:version]" in str(error.value.hint)


def test_the_parts_of_a_name() -> None:
    assert registered_name("shop/checkout") == ("shop", "checkout", None)
    assert registered_name("shop/checkout:1.2.0") == ("shop", "checkout", "1.2.0")
