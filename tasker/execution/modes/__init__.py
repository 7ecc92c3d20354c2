"""Places where handlers run: the event loop, threads, child processes."""
