"""The HTTP interface: parses a request, calls a service, renders what it answers. No rule of the engine is here."""
