"""Use cases, shared by the command line, the API, the page and programs. They call `engine` and `db`, and know no
transport.
"""
