"""Checkpoint graphs to look at: chosen, shown, exported; Z-cycles."""
