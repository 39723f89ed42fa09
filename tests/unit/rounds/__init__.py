"""Rounds: coordinated, by tokens, and after a burst of failures."""
