"""Plugins: discovered by entry points, selected by the configuration, notified in threads of their own."""
