"""Use cases of servers only: bulk submission with an answer per task, health, metrics, the audit log."""
