"""JSON Schemas in templates: are they valid, and does a value fit."""
