"""What handlers say while they run: log lines, prints and progress, kept with their steps."""
