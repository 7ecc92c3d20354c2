"""The conformance suite of messaging backends, by subject."""
