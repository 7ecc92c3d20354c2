"""Rules of tasks and steps without IO: state machines, evaluation, retry, expansion, identity.

Every function is pure. Time, randomness and fresh identifiers are arguments.
"""
