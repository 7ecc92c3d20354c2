"""Schemas of requests and answers, used for validation and for the OpenAPI description."""
