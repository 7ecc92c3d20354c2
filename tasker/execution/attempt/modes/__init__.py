"""Where a handler runs: on the event loop, in a thread, or in a child process."""
