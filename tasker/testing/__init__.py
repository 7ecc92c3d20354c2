"""Contexts for tests of handlers, and conformance tests for backends, which need pytest and pytest-asyncio."""

try:
    import pytest
except ModuleNotFoundError:  # `tasker.testing.contexts` works without pytest
    pass
else:
    pytest.register_assert_rewrite("tasker.testing.messaging")  # failed assertions show their values, as in test files
