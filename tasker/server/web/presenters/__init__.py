"""Content of pages, computed without IO from what was read."""
