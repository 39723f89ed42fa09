"""Raw events and state files: what a history is made of."""
