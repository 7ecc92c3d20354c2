"""The fleet as a whole: how it does now, and what is wrong with it."""
