"""Commands about the whole fleet: health, pauses, messaging backend."""
