"""Intervals of checkpoints, and the search they are made with."""
