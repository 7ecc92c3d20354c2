"""Templates and handlers in files: found, compiled, and checked against each other."""
