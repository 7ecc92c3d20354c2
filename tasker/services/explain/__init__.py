"""Explanation of why the steps of a task do not run: reasons, sentences, and the result of the database function."""
