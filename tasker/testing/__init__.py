"""Test suites that a backend proves itself with. They need pytest and pytest-asyncio."""

import pytest

pytest.register_assert_rewrite("tasker.testing.messaging")  # a failure shows the values, as in files of tests
