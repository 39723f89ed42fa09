"""cklog as a library."""
