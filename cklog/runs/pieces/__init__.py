"""A folder of base and delta checkpoints and nothing else: the patent's stores."""
