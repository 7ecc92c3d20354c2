"""Contexts for tests of handlers, and test suites that a backend proves itself with: those need pytest and
pytest-asyncio."""

try:
    import pytest
except ModuleNotFoundError:  # `tasker.testing.contexts` needs none
    pass
else:
    pytest.register_assert_rewrite("tasker.testing.messaging")  # a failure shows the values, as in files of tests
