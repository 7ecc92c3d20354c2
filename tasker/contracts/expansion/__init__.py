"""Outcomes of steps that create other steps, and the resulting changes of the graph."""
