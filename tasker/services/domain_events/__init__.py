"""Reading the events that steps have published: lists, streams, and subscribers that go on where they stopped."""
