"""Use cases shared by the command line, the API and the tests."""
