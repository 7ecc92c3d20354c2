"""State and problems of the whole fleet."""
