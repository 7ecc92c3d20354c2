"""Test suites that a backend proves itself with. They need pytest and pytest-asyncio."""
