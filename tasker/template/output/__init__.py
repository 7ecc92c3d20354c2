"""What is written of templates: diagnostics for people and tools, the schema for editors, plans as templates again."""
