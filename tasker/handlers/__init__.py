"""Opening; lazy names for the five doors."""
