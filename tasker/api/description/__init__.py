"""Description of the API: as OpenAPI and as an HTML page."""
