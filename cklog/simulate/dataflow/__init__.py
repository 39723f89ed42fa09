"""A dataflow job under a checkpointing protocol (CheckMate)."""
