"""Operator actions on tasks and their steps after failures."""
