"""The conformance suite of messaging backends by subject; `tasker.testing.messaging_contract` joins it."""
