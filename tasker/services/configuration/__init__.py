"""The configuration of a process: found, merged, checked, explained."""
