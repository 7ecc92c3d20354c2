"""The interface described: as OpenAPI, and as a page."""
