"""Why the steps of a task do not run: the reasons with their sentences, and what the database says of a task."""
