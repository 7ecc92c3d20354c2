"""Runs of workflows without a database: a compiled template, moved by the engine's own decisions on a virtual clock.

Contains the loop, mocks, exploration of all routes and the coverage of a template's graph. What only a real run can
show does not belong here: claims, queues, pauses, brokers, crashes of processes.
"""
