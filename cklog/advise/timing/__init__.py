"""When to checkpoint, by state sizes."""
