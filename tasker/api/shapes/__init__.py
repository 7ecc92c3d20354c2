"""What requests and answers look like: for checking requests, and for the description of the interface."""
