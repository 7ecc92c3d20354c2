"""Classes and functions that authors of handlers use, and the resolution of a handler by its name.

The documented import names are the doors `tasker.step_handler`, `tasker.types`, `tasker.registry`,
`tasker.batch_processing` and `tasker.domain_events`; they hand on names of this package. Nothing here knows of workers.
"""
