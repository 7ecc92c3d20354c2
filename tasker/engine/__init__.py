"""Opening; which module belongs to which folder of sql/functions.

Every function is pure. Time, randomness and fresh identifiers are arguments.
"""
