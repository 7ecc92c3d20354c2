"""Output of running handlers: log lines, prints and progress, stored with their steps."""
