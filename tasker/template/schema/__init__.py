"""JSON Schemas in templates: validation of schemas, and of values against them."""
