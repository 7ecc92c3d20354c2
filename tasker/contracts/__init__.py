"""Ports and frozen values that the layers, the backends and the plugins share. Standard library only."""
