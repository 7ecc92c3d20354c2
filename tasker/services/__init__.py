"""Use cases that the command line, the API and the tests share."""
