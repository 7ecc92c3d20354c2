"""The tables of the configuration, a module for each part, as strict models."""
