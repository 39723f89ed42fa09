"""How long a recovery takes."""
