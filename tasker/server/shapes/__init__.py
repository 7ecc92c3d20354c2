"""Answers and bodies of the REST API, as OpenAPI describes them."""
