"""Plugins: found by entry points, chosen by the configuration, told in threads of their own."""
