"""Recovery lines: the fixpoint, the proof, the logs that are replayed, exports for other tools."""
