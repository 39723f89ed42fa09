"""Advice: Q and U of check records, D of deltas, and when to checkpoint."""
