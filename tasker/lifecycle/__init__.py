"""What a task and a step may do, decided without IO: state machines, evaluation, retry, expansion, identity.

Every function here goes from values to values. Time, randomness and fresh identifiers are arguments.
"""
