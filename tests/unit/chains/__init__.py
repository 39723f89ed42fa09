"""Chains of a base and its deltas: what can be restored."""
