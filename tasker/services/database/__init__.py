"""The care of the database: what is deleted when, and what takes room."""
