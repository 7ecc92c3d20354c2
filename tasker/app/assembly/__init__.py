"""How processes are put together of their objects."""
