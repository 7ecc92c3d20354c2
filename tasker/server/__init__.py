"""Everything that answers HTTP: auth, API, web UI, the port of a worker.

Routes parse requests and call the same services as the API and the command line; `views` are pure functions that
prepare values for the templates.
"""
