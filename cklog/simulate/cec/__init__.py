"""An operator under continuous eventual checkpointing."""
