"""Conformance tests of messaging backends by subject; `tasker.testing.messaging_contract` combines them."""
