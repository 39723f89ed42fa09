"""Checkpointing protocols judged: metrics, the index of CIC, failures at every moment."""
