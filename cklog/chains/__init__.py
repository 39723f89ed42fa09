"""Chains of base and delta checkpoints: what can still be restored, from what, and what it takes."""
