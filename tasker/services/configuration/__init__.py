"""Configuration of a process: its sources, their merging, and warnings about it."""
