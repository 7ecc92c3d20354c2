"""Lazy names of all read models."""
