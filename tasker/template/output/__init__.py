"""Output formats: diagnostics for people and tools, the schema for editors, plans as templates."""
