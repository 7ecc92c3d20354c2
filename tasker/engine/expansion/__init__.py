"""Steps that decisions and batches add to the graph of a task."""
