"""Commands about the fleet as a whole: how it does, what it must not start, its messaging provider."""
