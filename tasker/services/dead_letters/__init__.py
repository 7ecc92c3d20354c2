"""Dead letters: failed tasks recorded for inspection, and replays of those with the same failure."""
