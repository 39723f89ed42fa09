"""Checkpoint stores by key (US patent 9,471,438)."""
