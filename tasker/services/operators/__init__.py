"""Actions of operators: steps, reruns, dead letters, replays, pauses."""
