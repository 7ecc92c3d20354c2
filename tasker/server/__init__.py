"""Everything that answers HTTP: authentication, REST API, web page, and the port of a worker.

Routes parse a request, call a service and render its answer; decisions belong to `services`.
"""
