"""Web UI under `/ui`: what is happening, why a task does not proceed, and the actions that help.

Routes parse requests and call the same services as the API and the command line; `views` are pure functions that
prepare values for the templates.
"""
