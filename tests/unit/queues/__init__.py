"""Output queues: the eventual checkpoint, and extent over time."""
